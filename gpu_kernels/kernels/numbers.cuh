// Conversions of the 16-bit types and accesses to several elements at once, by the device's
// instructions where there is a device.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include <cmath>
#include <cstring>

#include "base/dtype.h"
#include "base/error.h"
#endif

namespace hearth::HEARTH_GPU {

#ifdef __CUDACC__

__device__ inline float bf16_to_float(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
__device__ inline float f16_to_float(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
/// Two floats rounded to bf16, the first in the lower half.
__device__ inline uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

/// The same to f16.
__device__ inline uint32_t pack_f16(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

/// 2^x, zero where that is below the normal numbers: one instruction.
__device__ inline float exp2_flushed(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// One access to as many bytes as T has; the address is a multiple of them.
template <class T>
__device__ inline T load_wide(const void* from) {
  return *static_cast<const T*>(from);
}
template <class T>
__device__ inline void store_wide(void* to, const T& x) {
  *static_cast<T*>(to) = x;
}

#else

inline float bf16_to_float(uint16_t bits) { return to_float(bf16{bits}); }
inline float f16_to_float(uint16_t bits) { return to_float(f16{bits}); }
inline uint32_t pack_bf16(float low, float high) {
  return to_bf16(low).bits | static_cast<uint32_t>(to_bf16(high).bits) << 16;
}
inline uint32_t pack_f16(float low, float high) {
  return to_f16(low).bits | static_cast<uint32_t>(to_f16(high).bits) << 16;
}
inline float exp2_flushed(float x) { return x < -126.0f ? 0.0f : std::exp2(x); }
// The compiler of the host may merge a wide access with the narrow ones of another branch, and then
// takes the alignment of the first for granted.
template <class T>
T load_wide(const void* from) {
  HEARTH_CHECK(reinterpret_cast<uintptr_t>(from) % sizeof(T) == 0, "wide load: alignment");
  T x;
  std::memcpy(&x, from, sizeof(T));
  return x;
}
template <class T>
void store_wide(void* to, const T& x) {
  HEARTH_CHECK(reinterpret_cast<uintptr_t>(to) % sizeof(T) == 0, "wide store: alignment");
  std::memcpy(to, &x, sizeof(T));
}

#endif

}  // namespace hearth::HEARTH_GPU
