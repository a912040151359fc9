// Notices ranks that die, stop or are cut off, over connections that have nothing to do with MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/peer_sockets.h"
#include "comm/piece_counts.h"
#include "comm/world.h"

namespace hearth {

/// What a watchdog asks and reports, from its own thread.
struct WatchdogCalls {
  /// A rank has failed, or another rank says so. Called again if more failures are noticed.
  std::function<void(PeerFailure)> failed;
  /// What this rank is in.
  std::function<CommPoint()> point;
  /// Steady seconds since when the thread that calls MPI has been in one call.
  std::function<double()> in_call_since;
  /// The messages of this rank.
  const PieceCounts* pieces = nullptr;
  /// Seconds in which some of them move, however slow the links are.
  double least_stall_s = 0;
};

/// A thread of its own sends signs of life to all other ranks, whatever the other threads of the
/// process do, and waits for theirs. A rank has failed
///   - if its connection ends before it has said goodbye (died),
///   - if it gives no sign for longer than the limit (silent),
///   - if it is this one, and MPI has not come back from a call for a little longer than that,
///   - if it gives signs, but messages between it and others stand still for longer than the limit
///     (cut off; comm/progress_watch.h). Then rank 0 says which rank the run ends with, so that all
///     ranks name the same.
class Watchdog {
 public:
  /// `hosts`, `peers`: by rank; every connection but that of this rank is open.
  Watchdog(int32_t rank, std::vector<std::string> hosts, std::vector<Socket> peers,
           WatchdogCalls calls);
  /// Sends what was told before; does not say goodbye by itself.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Thread-safe. None waits for another rank.
  /// World::watch.
  void watch(double silence_s);
  /// Tells all others that the run has failed.
  void tell(const PeerFailure& failure);
  /// This rank leaves, and its connections may end.
  void say_goodbye();
  /// Whether all others have said goodbye.
  bool all_have_left() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace hearth
