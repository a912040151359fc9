#include "support/counted_memory.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {
thread_local int64_t held = 0;
thread_local int64_t start = 0;
thread_local int64_t peak = 0;
}  // namespace

namespace hearth::test {
void start_counting() { start = peak = held; }
int64_t counted_peak() { return peak - start; }
}  // namespace hearth::test

void* operator new(size_t bytes) {
  void* block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  held += static_cast<int64_t>(malloc_usable_size(block));
  peak = std::max(peak, held);
  return block;
}
void operator delete(void* block) noexcept {
  held -= static_cast<int64_t>(malloc_usable_size(block));
  std::free(block);
}
void operator delete(void* block, size_t) noexcept { operator delete(block); }
