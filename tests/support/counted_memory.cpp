#include "support/counted_memory.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
thread_local int64_t held = 0;
thread_local int64_t start = 0;
thread_local int64_t peak = 0;
std::atomic<int64_t> made{0};   // by all threads
std::atomic<int64_t> fails{0};  // this one does
}  // namespace

namespace hearth::test {
void fail_allocation(int64_t n) {
  fails = 0;
  made = 0;
  fails = n;
}
int64_t allocations() { return made; }
void start_counting() { start = peak = held; }
int64_t counted_peak() { return peak - start; }
}  // namespace hearth::test

// All forms that the standard library uses, so that each block meets the delete of its new.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  if (made.fetch_add(1, std::memory_order_relaxed) + 1 == fails) return nullptr;
  void* block = std::malloc(bytes);
  if (block == nullptr) return nullptr;
  held += static_cast<int64_t>(malloc_usable_size(block));
  peak = std::max(peak, held);
  return block;
}
void* operator new(size_t bytes) {
  void* block = operator new(bytes, std::nothrow);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t& tag) noexcept {
  return operator new(bytes, tag);
}
void operator delete(void* block) noexcept {
  held -= static_cast<int64_t>(malloc_usable_size(block));
  std::free(block);
}
void operator delete(void* block, size_t) noexcept { operator delete(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { operator delete(block); }
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete[](void* block, size_t) noexcept { operator delete(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { operator delete(block); }
