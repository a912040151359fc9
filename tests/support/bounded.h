// Checks that a reader of untrusted input needs memory and time at most linear in its input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace hearth::test {

/// Limits of one call. Memory: the peak above what was held before.
/// Bytes: times * input + bytes. Seconds: seconds + microseconds_a_byte * input.
struct Limits {
  double times = 4;  // bytes of memory per byte of input
  uint64_t bytes = uint64_t{1} << 20;
  double seconds = 1;  // CPU time of this thread; instrumented builds are slow
  double microseconds_a_byte = 50;
};

/// RAII: its destructor aborts with one line if the scope exceeded the limits. One at a time.
class Bounded {
 public:
  explicit Bounded(size_t input, const Limits& limits = {});
  ~Bounded();
  Bounded(const Bounded&) = delete;
  Bounded& operator=(const Bounded&) = delete;

 private:
  size_t input_;
  Limits limits_;
  timespec begin_{};
};

}  // namespace hearth::test
