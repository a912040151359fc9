// Reading elements of any stored type, one or a chunk of eight.
#pragma once

#include "gpu_kernels/kernels/numbers.cuh"
#include "gpu_kernels/launch.h"
#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

/// Elements that are read, converted and stored together: 16 bytes of bf16.
constexpr int kChunk = 8;

__device__ inline int size_of(Stored stored) { return stored == Stored::f32 ? 4 : 2; }

/// Element i of an array.
__device__ inline float load_element(const void* data, Stored stored, int64_t i) {
  switch (stored) {
    case Stored::bf16: return bf16_to_float(static_cast<const uint16_t*>(data)[i]);
    case Stored::f16: return f16_to_float(static_cast<const uint16_t*>(data)[i]);
    default: return static_cast<const float*>(data)[i];
  }
}

/// Eight elements as bf16, of which the first `valid` (0 to 8) are there and the rest are zero.
__device__ inline uint4 load_chunk(const void* data, Stored stored, int64_t first, int valid) {
  float x[kChunk];
  const char* const from = static_cast<const char*>(data) + first * size_of(stored);
  if (valid == kChunk && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
    if (stored == Stored::bf16) return load_wide<uint4>(from);
    if (stored == Stored::f32) {
      const auto p = load_wide<float4>(from), q = load_wide<float4>(from + 16);
      return {pack_bf16(p.x, p.y), pack_bf16(p.z, p.w), pack_bf16(q.x, q.y), pack_bf16(q.z, q.w)};
    }
  }
#pragma unroll
  for (int i = 0; i < kChunk; ++i) {
    x[i] = i < valid ? load_element(data, stored, first + i) : 0.0f;
  }
  return {pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]),
          pack_bf16(x[6], x[7])};
}

__device__ inline int clamp_int(int x, int low, int high) {
  return x < low ? low : x > high ? high : x;
}

}  // namespace hearth::HEARTH_GPU
