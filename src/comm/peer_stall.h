// Ranks that live, but between which no message moves: when the run ends, and with which of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/peer_error.h"

namespace hearth {

/// Rank `to` waits for what rank `from` has sent it (comm/progress_watch.h).
struct PeerStall {
  int32_t from = 0, to = 0;
  double seconds = 0;  // in which nothing has moved at either
  CommPoint at;        // what `to` waits in
};

/// Rank 0 judges the stalls of all ranks, so that all end with the same line. A rank that is cut off
/// stalls with all others, but they do not notice at the same time: some still have messages for each
/// other. So ranks tell a stall with each beat, from half of the limit on. When the first one reaches
/// the limit, the rank is named that most stalls have in common; of several the last.
class StallJudge {
 public:
  /// `hosts`: by rank.
  explicit StallJudge(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  void set_limit(double limit_s, double beat_s) {
    limit_s_ = limit_s;
    beat_s_ = beat_s;
  }
  /// Whether rank 0 is to hear of a stall that lasts for so long.
  bool must_tell(double seconds) const;
  /// The failure, if the stall has reached the limit.
  std::optional<PeerFailure> note(const PeerStall& stall, double now);

 private:
  struct Noted {
    PeerStall stall;
    double at = 0;  // steady seconds
  };
  PeerFailure failure() const;

  std::vector<std::string> hosts_;
  std::vector<Noted> noted_;
  double limit_s_ = 0, beat_s_ = 0;
};

}  // namespace hearth
