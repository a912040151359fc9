#include "cuda_emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define HEARTH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEARTH_ASAN 1
#endif
#endif
#ifdef HEARTH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Saves what a function call must keep, leaves the stack at *from, goes on with that at `to`.
extern "C" void hearth_fiber_switch(void** from, void* to);
asm(R"(
.text
.globl hearth_fiber_switch
.type hearth_fiber_switch,@function
hearth_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size hearth_fiber_switch,.-hearth_fiber_switch
)");

namespace hearth::cuda_emulator {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;  // pages that are not touched are not there
constexpr size_t kGuardBytes = 4096;
constexpr int kSaved = 6;  // registers

Fiber* entered = nullptr;  // the fiber that was switched to last,
Fiber* left = nullptr;     // and the one before

}  // namespace

Fiber::Fiber(void (*main)()) : main_(main) {
  mapping_ = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(mapping_, kGuardBytes, PROT_NONE);
  stack_ = static_cast<std::byte*>(mapping_) + kGuardBytes;
  stack_bytes_ = kStackBytes;
  reset();
}

Fiber::~Fiber() {
  if (mapping_ != nullptr) munmap(mapping_, kStackBytes + kGuardBytes);
}

void Fiber::reset() {
#ifdef HEARTH_ASAN
  ASAN_UNPOISON_MEMORY_REGION(stack_, stack_bytes_);
#endif
  auto* top =
      reinterpret_cast<uint64_t*>(static_cast<std::byte*>(mapping_) + kGuardBytes + kStackBytes);
  *--top = 0;  // no caller; with it the stack is aligned as at the start of a function
  *--top = reinterpret_cast<uint64_t>(&Fiber::begin);
  for (int i = 0; i < kSaved; ++i) *--top = 0;
  top_ = top;
}

void Fiber::begin() {
#ifdef HEARTH_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &left->stack_, &left->stack_bytes_);
#endif
  entered->main_();
}

void Fiber::run(Fiber& from) {
  entered = this;
  left = &from;
#ifdef HEARTH_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack_, stack_, stack_bytes_);
#endif
  hearth_fiber_switch(&from.top_, top_);
#ifdef HEARTH_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack_, &left->stack_, &left->stack_bytes_);
#endif
}

}  // namespace hearth::cuda_emulator
