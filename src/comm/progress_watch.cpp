#include "comm/progress_watch.h"

#include <algorithm>

namespace hearth {
namespace {

constexpr double kMostBeats = 2;  // that count between two signs

}  // namespace

double ProgressWatch::heard(int32_t rank, const PieceWait& wait, bool is_sent, int64_t own_ended,
                            double now) {
  const std::pair key(rank, wait.group);
  if (!is_sent) {
    seen_.erase(key);
    return 0;
  }
  const auto [place, is_new] = seen_.try_emplace(key);
  Seen& seen = place->second;
  const bool moved = is_new || seen.arrived != wait.arrived || seen.ended != wait.ended ||
                     seen.own_ended != own_ended;
  const double counted = std::min(now - seen.at, kMostBeats * beat_s_);
  seen = {wait.arrived, wait.ended, own_ended, now, moved ? 0 : seen.stalled_s + counted};
  return seen.stalled_s;
}

}  // namespace hearth
