// Measures elapsed seconds.
#pragma once

#include <chrono>

namespace hearth {

class Stopwatch {
 public:
  void restart() { begin_ = Clock::now(); }
  /// Since construction or the last restart.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

/// Seconds since some moment, of the clock of Stopwatch.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace hearth
