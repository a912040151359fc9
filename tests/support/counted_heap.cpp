#include "support/counted_heap.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {
std::atomic<int64_t> calls{0};
void count() { calls.fetch_add(1, std::memory_order_relaxed); }
}  // namespace

int64_t hearth::test::heap_calls() { return calls; }

// glibc's own functions under their other names. What they return is freed by glibc's free.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(size_t n, size_t bytes) {
  count();
  return __libc_calloc(n, bytes);
}
void* realloc(void* block, size_t bytes) {
  count();
  return __libc_realloc(block, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block == nullptr && bytes > 0 ? ENOMEM : 0;
}
}
