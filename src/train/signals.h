// Signals that ask a run to stop: SIGINT, SIGTERM, SIGUSR1.
#pragma once

namespace hearth {

/// While it lives, the first of these signals is the request of base/stop.h and a second one ends the
/// process at once with exit code 75 (what was published stays whole), unless it comes within a tenth
/// of a second: that is the first one sent twice. One at a time in a process.
class StopSignals {
 public:
  StopSignals();
  /// The request ends with it. The handler stays: a signal while the process ends, with its work
  /// done and its code decided, must not replace that code.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

}  // namespace hearth
