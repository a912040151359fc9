// The tensor cores and what feeds them from shared memory (sm_80 and newer), one function an
// instruction. The emulator has functions of the same layout of fragments.
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

#endif

/// Where chunk `chunk` of eight 16-bit elements of a row lies, in chunks: permuted, so that the eight
/// rows which ldmatrix reads at once fall on different banks.
template <int kChunksPerRow>
__device__ inline int chunk_place(int row, int chunk) {
  if constexpr (kChunksPerRow >= 8) {
    return row * kChunksPerRow + (chunk ^ (row & 7));
  } else {
    return row * kChunksPerRow + (chunk ^ ((row >> 1) & 3));
  }
}

}  // namespace hearth::HEARTH_GPU
