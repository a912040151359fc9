#include "comm/peer_stall.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

namespace hearth {

namespace {

constexpr double kTold = 0.5;      // of the limit
constexpr double kFreshBeats = 4;  // a stall that was not told again for so long has ended

}  // namespace

bool StallJudge::must_tell(double seconds) const {
  return limit_s_ > 0 && seconds > kTold * limit_s_;
}

std::optional<PeerFailure> StallJudge::note(const PeerStall& stall, double now) {
  std::erase_if(noted_, [&](const Noted& noted) {
    const bool is_same =
        noted.stall.from == stall.from && noted.stall.to == stall.to && noted.stall.at == stall.at;
    return is_same || noted.at < now - kFreshBeats * beat_s_;
  });
  noted_.push_back({stall, now});
  if (limit_s_ <= 0 || stall.seconds <= limit_s_) return std::nullopt;
  return failure();
}

PeerFailure StallJudge::failure() const {
  std::vector<std::set<int32_t>> others(hosts_.size());  // by rank: the other ranks of its stalls
  for (const auto& [stall, at] : noted_) {
    others[static_cast<size_t>(stall.from)].insert(stall.to);
    others[static_cast<size_t>(stall.to)].insert(stall.from);
  }
  size_t named = 0;
  for (size_t rank = 0; rank < others.size(); ++rank) {
    if (others[rank].size() >= others[named].size()) named = rank;
  }
  const auto number = static_cast<int32_t>(named);
  const PeerStall* first = nullptr;
  double seconds = 0;
  for (const auto& [stall, at] : noted_) {
    if (stall.from != number && stall.to != number) continue;
    seconds = std::max(seconds, stall.seconds);
    const auto place = [](const PeerStall& s) {
      return std::tuple(s.at.label.step, s.at.label.number);
    };
    if (first == nullptr || place(stall) < place(*first)) first = &stall;
  }

  PeerFailure failure;
  failure.rank = number;
  failure.host = hosts_[named];
  failure.fault = PeerFault::cut_off;
  failure.at = first->at;
  failure.silent_s = seconds;
  const int32_t other = *others[named].begin();
  const size_t more = others[named].size() - 1;
  failure.detail = fmt::format(
      "has moved no message to or from {}{} for {:.3g} s, in {}, though all give signs of life; "
      "check the network that MPI uses",
      named_rank(other, hosts_[static_cast<size_t>(other)]),
      more == 0 ? "" : fmt::format(" and {} more rank{}", more, more == 1 ? "" : "s"), seconds,
      failure.at.text());
  return failure;
}

}  // namespace hearth
