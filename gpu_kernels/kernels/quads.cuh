// Four neighbouring elements at a time: what elementwise kernels and kernels over rows do with f32 and
// the stored types.
#pragma once

#include <cstdint>

#include "gpu_kernels/kernels/operand.cuh"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {

/// The first n (1 to 4) of four elements; in one access where they may be accessed together.
__device__ inline void read4(const float* from, int n, bool together, float (&x)[4]) {
  if (together && n == 4) {
    const auto all = load_wide<float4>(from);
    x[0] = all.x;
    x[1] = all.y;
    x[2] = all.z;
    x[3] = all.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = i < n ? from[i] : 0.0f;
}
__device__ inline void write4(float* to, int n, bool together, const float (&x)[4]) {
  if (together && n == 4) {
    store_wide(to, float4{x[0], x[1], x[2], x[3]});
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < n) to[i] = x[i];
  }
}

/// The same for any stored type, from element `at` on.
__device__ inline void read4(const void* data, Stored stored, int64_t at, int n, bool together,
                             float (&x)[4]) {
  if (stored == Stored::f32) {
    read4(static_cast<const float*>(data) + at, n, together, x);
    return;
  }
  const auto* from = static_cast<const uint16_t*>(data) + at;
  uint16_t bits[4];
  if (together && n == 4) {
    const auto all = load_wide<uint2>(from);
    bits[0] = static_cast<uint16_t>(all.x);
    bits[1] = static_cast<uint16_t>(all.x >> 16);
    bits[2] = static_cast<uint16_t>(all.y);
    bits[3] = static_cast<uint16_t>(all.y >> 16);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) bits[i] = i < n ? from[i] : uint16_t{0};
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[i] = stored == Stored::bf16 ? bf16_to_float(bits[i]) : f16_to_float(bits[i]);
  }
}
__device__ inline void write4(void* data, Stored stored, int64_t at, int n, bool together,
                              const float (&x)[4]) {
  if (stored == Stored::f32) {
    write4(static_cast<float*>(data) + at, n, together, x);
    return;
  }
  const bool is_bf16 = stored == Stored::bf16;
  const uint32_t low = is_bf16 ? pack_bf16(x[0], x[1]) : pack_f16(x[0], x[1]);
  const uint32_t high = is_bf16 ? pack_bf16(x[2], x[3]) : pack_f16(x[2], x[3]);
  auto* to = static_cast<uint16_t*>(data) + at;
  if (together && n == 4) {
    store_wide(to, uint2{low, high});
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < n) to[i] = static_cast<uint16_t>((i < 2 ? low : high) >> (i % 2 * 16));
  }
}

constexpr int kQuadThreads = 256;
constexpr int kQuadsPerThread = 2;
constexpr int64_t kElementsPerBlock = int64_t{4} * kQuadThreads * kQuadsPerThread;

/// Blocks that cover rows of `cols` elements with `for_quads_of_block`, each within a row.
inline int64_t quad_blocks(int64_t rows, int64_t cols) {
  return rows * parts_over(cols, kElementsPerBlock);
}

/// f(row, col, n) for this block's elements, n from col on.
template <class F>
__device__ inline void for_quads_of_block(int64_t cols, const F& f) {
  const auto in_row = static_cast<unsigned>(parts_over(cols, kElementsPerBlock));
  const int64_t row = blockIdx.x / in_row;
  const int64_t first = blockIdx.x % in_row * kElementsPerBlock;
#pragma unroll
  for (int i = 0; i < kQuadsPerThread; ++i) {
    const int64_t col = first + int64_t{4} * (i * kQuadThreads + static_cast<int>(threadIdx.x));
    if (col < cols) f(row, col, cols - col < 4 ? static_cast<int>(cols - col) : 4);
  }
}

__device__ inline float logistic(float x) { return 1.0f / (1.0f + expf(-x)); }

}  // namespace hearth::HEARTH_GPU
