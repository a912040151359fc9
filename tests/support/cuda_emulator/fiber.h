// Fibers: stacks of their own, switched to and from without the system. x86-64, as is the program.
#pragma once

#include <cstddef>

namespace hearth::cuda_emulator {

/// A stack and where it was left. The calling thread itself is one, too, made with no stack.
class Fiber {
 public:
  /// `main` never returns. It begins at the first switch to the fiber.
  explicit Fiber(void (*main)());
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Leaves the running fiber `from` for this one; returns when someone switches back to `from`.
  void run(Fiber& from);
  /// Forgets where the fiber was left: it begins anew. Objects on its stack are not destroyed.
  void reset();

 private:
  static void begin();

  void (*main_)() = nullptr;
  void* mapping_ = nullptr;
  void* top_ = nullptr;          // of what is saved
  const void* stack_ = nullptr;  // lowest byte, for the address sanitizer
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace hearth::cuda_emulator
