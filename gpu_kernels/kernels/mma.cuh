// The tensor cores and what feeds them (sm_80 and newer), one function an instruction. The emulator
// has functions of the same layout of fragments.
#pragma once

#include <cstdint>

#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {

#ifdef __CUDACC__

__device__ inline uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

/// c += a b with a [16, 16] and b [16, 8] of bf16, c [16, 8] of f32, spread over the warp as PTX says
/// (mma.m16n8k16): with g = lane / 4 and t = lane % 4, a pair being two neighbours 2t, 2t + 1,
///   a: rows g, g + 8, g, g + 8, the pair of columns from 0, 0, 8, 8;
///   b: the pair of rows from 0, 8 in column g;   c: the pair of columns in rows g, g + 8.
__device__ inline void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Four 8 x 8 parts of 16-bit elements: lane 8 i + r gives the address of row r of part i (16 bytes,
/// aligned); afterwards lane 4 r + t has elements 2t, 2t + 1 of row r of part i in x[i].
__device__ inline void ldmatrix_x4(uint32_t (&x)[4], const void* shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared_address(shared_row))
               : "memory");
}
/// The parts transposed.
__device__ inline void ldmatrix_x4_trans(uint32_t (&x)[4], const void* shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared_address(shared_row))
               : "memory");
}

/// Starts a copy of the first `bytes` (0 to 16) from global memory, zeros after them, to 16 bytes of
/// shared memory; both addresses are multiples of 16.
__device__ inline void cp_async_16(void* shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(shared)),
               "l"(global), "r"(bytes)
               : "memory");
}
/// Closes a group of this thread's copies.
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// Waits until at most the last kPending groups of this thread are under way.
template <int kPending>
__device__ inline void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

#else

inline void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  emulate_mma_m16n8k16(c, a, b);
}
inline void ldmatrix_x4(uint32_t (&x)[4], const void* shared_row) {
  emulate_ldmatrix_x4(x, shared_row, false);
}
inline void ldmatrix_x4_trans(uint32_t (&x)[4], const void* shared_row) {
  emulate_ldmatrix_x4(x, shared_row, true);
}
inline void cp_async_16(void* shared, const void* global, int bytes) {
  emulate_copy_async_part(shared, global, 16, bytes);
}
inline void cp_async_commit() { emulate_commit_copies(); }
template <int kPending>
inline void cp_async_wait() {
  emulate_wait_copies(kPending);
}

#endif

}  // namespace hearth::HEARTH_GPU
