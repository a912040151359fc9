#include "comm/silence_watch.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hearth {
namespace {

constexpr double kBeats = 8;  // in the limit
constexpr double kStopped = 0.25;
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

void SilenceWatch::set_limit(double silence_s, double now) {
  if (silence_s_ == 0 || silence_s < silence_s_) {  // signs came less often until now
    for (double& at : heard_at_) at = std::max(at, now);
  }
  looked_at_ = now;
  silence_s_ = silence_s;
}

double SilenceWatch::beat_s() const { return silence_s_ / kBeats; }

bool SilenceWatch::must_beat(double now) {
  if (!is_on() || now - beat_at_ < beat_s()) return false;
  beat_at_ = now;
  return true;
}

void SilenceWatch::left(int32_t rank) { heard_at_[static_cast<size_t>(rank)] = kNever; }

std::optional<SilenceWatch::Silent> SilenceWatch::look(double now) {
  if (!is_on()) return std::nullopt;
  if (now - std::exchange(looked_at_, now) > kStopped * silence_s_) since_ = now;
  const auto longest = std::min_element(heard_at_.begin(), heard_at_.end());
  const double silent = now - std::max(*longest, since_);
  if (silent <= silence_s_) return std::nullopt;
  return Silent{static_cast<int32_t>(longest - heard_at_.begin()), silent};
}

}  // namespace hearth
