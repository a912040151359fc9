// Copies from global to shared memory that run beside the computation (cp.async, sm_80 and newer).
#pragma once

#include <cstdint>

#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {

#ifdef __CUDACC__

/// Starts a copy of the first `bytes` (0 to 16) to 16 bytes of shared memory, zeros after them; both
/// addresses are multiples of 16. Nothing is read of no bytes.
__device__ inline void copy_async16(void* shared, const void* global, int bytes) {
  const auto target = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(global),
               "r"(bytes)
               : "memory");
}
/// Four bytes, both addresses multiples of 4; zeros where not `valid`, and then nothing is read.
__device__ inline void copy_async4(void* shared, const void* global, bool valid) {
  const auto target = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(target), "l"(global),
               "r"(valid ? 4 : 0)
               : "memory");
}
/// Closes a group of this thread's copies.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// Waits until at most the last `pending` groups of this thread are under way. Other threads see
/// what was copied after a barrier.
template <int pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending) : "memory");
}

#else

inline void copy_async16(void* shared, const void* global, int bytes) {
  emulate_copy_async(shared, global, 16, bytes);
}
inline void copy_async4(void* shared, const void* global, bool valid) {
  emulate_copy_async(shared, global, 4, valid ? 4 : 0);
}
inline void commit_copies() { emulate_commit_copies(); }
template <int pending>
inline void wait_copies() {
  emulate_wait_copies(pending);
}

#endif

/// Pieces on their way to kSlots slots of kSlotSize elements: while one is used, the next are
/// copied. `load(n, slot)` starts the copy of piece n. One barrier a piece: who passes it has used up
/// piece n - 1, whose slot takes piece n + kSlots - 1.
template <class T, int kSlots, int kSlotSize>
class CopyRing {
 public:
  template <class Load>
  __device__ CopyRing(T* slots, int pieces, const Load& load) : slots_(slots), pieces_(pieces) {
    for (int n = 0; n < kSlots - 1; ++n) issue(load, n);
  }
  /// Waits for the next piece; it stays until the call after.
  template <class Load>
  __device__ const T* next(const Load& load) {
    wait_copies<kSlots - 2>();
    __syncthreads();
    issue(load, used_ == 0 ? kSlots - 1 : used_ - 1);
    const T* piece = slots_ + used_ * kSlotSize;
    used_ = used_ + 1 == kSlots ? 0 : used_ + 1;
    return piece;
  }

 private:
  template <class Load>
  __device__ void issue(const Load& load, int slot) {
    if (issued_ < pieces_) load(issued_, slots_ + slot * kSlotSize);
    commit_copies();  // an empty group at the end keeps the count
    ++issued_;
  }

  T* slots_;
  int pieces_, issued_ = 0, used_ = 0;
};

}  // namespace hearth::HEARTH_GPU
