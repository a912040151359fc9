// Copies from global to shared memory that run beside the computation (cp.async, sm_80 and newer).
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

/// Sixteen bytes, both addresses multiples of 16; zeros where not `valid`, and then nothing is read.
__device__ inline void copy_async16(void* shared, const void* global, bool valid) {
#ifdef __CUDACC__
  const auto target = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
#else
  emulate_copy_async(shared, global, 16, valid);
#endif
}

/// Four bytes, both addresses multiples of 4.
__device__ inline void copy_async4(void* shared, const void* global, bool valid) {
#ifdef __CUDACC__
  const auto target = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(target), "l"(global),
               "r"(valid ? 4 : 0)
               : "memory");
#else
  emulate_copy_async(shared, global, 4, valid);
#endif
}

/// Closes a group of this thread's copies.
__device__ inline void commit_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#else
  emulate_commit_copies();
#endif
}

/// Waits until at most the `pending` last groups of this thread are under way. Other threads see
/// what was copied after a barrier.
template <int pending>
__device__ inline void wait_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending) : "memory");
#else
  emulate_wait_copies(pending);
#endif
}

}  // namespace hearth::HEARTH_GPU
