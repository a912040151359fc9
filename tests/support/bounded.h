// Holds a reader of outside input to memory and time that grow no faster than its input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace hearth::test {

/// The most that one call may take. Memory is what it holds at a time beyond what was held before.
struct Limits {
  double times = 4;  // bytes of memory a byte of input
  uint64_t bytes = uint64_t{1} << 20;
  double seconds = 1;  // of this thread; instrumented builds and busy machines are slow
  double microseconds_a_byte = 50;
};

/// Aborts with one line where the life of this took more. One at a time.
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
