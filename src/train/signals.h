// Signals that ask a run to stop: SIGINT, SIGTERM, SIGUSR1, SIGUSR2, and SIGHUP unless it is ignored
// (nohup).
#pragma once

namespace hearth {

/// RAII: the first of these signals sets the stop request of base/stop.h. A second one ends the
/// process at once with exit code 75; published files stay intact. A signal within 0.1 s of the
/// first does not count, because some schedulers send one request twice. One instance per process.
class StopSignals {
 public:
  StopSignals();
  /// Clears the request, but keeps the handler: a signal while the process exits must not replace
  /// its exit code.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

}  // namespace hearth
