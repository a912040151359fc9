// Simulates how long copies take over links of a given bandwidth, for virtual devices.
#pragma once

#include <cstddef>
#include <mutex>

namespace hearth {

/// A clock that paced copies and tasks read and wait on.
class LinkClock {
 public:
  virtual ~LinkClock() = default;
  virtual double now() = 0;
  /// Returns when it is `seconds`, or a little later.
  virtual void sleep_until(double seconds) = 0;
};

/// The system's steady clock. A thread that sleeps wakes some microseconds late on a quiet machine:
/// it asks the kernel not to bundle its timers.
LinkClock& steady_link_clock();

/// One direction of a link. Booked pieces pass one after the other at the link's bandwidth, so
/// copies that book small pieces in turn share it. Thread-safe.
class Link {
 public:
  /// Bytes per second; 0: no limit.
  explicit Link(double bandwidth) : bandwidth_(bandwidth) {}
  /// When `bytes` bytes that are ready at `now` will have passed.
  double book(double now, size_t bytes);
  double bandwidth() const { return bandwidth_; }

 private:
  const double bandwidth_;
  std::mutex mutex_;
  double free_at_ = 0;
};

/// Devices below one root complex share one link per direction.
struct RootComplex {
  explicit RootComplex(double bandwidth) : in(bandwidth), out(bandwidth) {}
  Link in, out;
};

}  // namespace hearth
