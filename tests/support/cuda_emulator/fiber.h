// Fibers: separate stacks, switched without system calls. x86-64 only.
#pragma once

#include <cstddef>

namespace hearth::cuda_emulator {

/// A stack and its saved position. A default-constructed fiber represents the calling thread.
class Fiber {
 public:
  /// `main` starts at the first switch to the fiber, and must never return.
  explicit Fiber(void (*main)());
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Switches from the running fiber `from` to this one. Returns when a fiber switches back to
  /// `from`.
  void run(Fiber& from);
  /// Restarts the fiber from `main`. Does not destroy objects on its stack.
  void reset();

 private:
  static void begin();

  void (*main_)() = nullptr;
  void* mapping_ = nullptr;
  void* top_ = nullptr;          // saved stack pointer
  const void* stack_ = nullptr;  // lowest byte, for the address sanitizer
  size_t stack_bytes_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;  // for the address sanitizer
};

}  // namespace hearth::cuda_emulator
