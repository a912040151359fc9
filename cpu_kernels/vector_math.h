// Functions that the compiler can vectorise: no branch, no call.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

/// For functions with hot loops: compiles an AVX-512 clone, and the loader chooses a clone. Both
/// give the same bits, because nothing is contracted or reassociated. Not under sanitizers, which
/// cannot run the choice that early.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define HEARTH_CLONES
#else
#define HEARTH_CLONES __attribute__((target_clones("avx512f", "default")))
#endif
/// Before a loop whose arrays may be identical but never partly overlap.
#if defined(__clang__)
#define HEARTH_SAME_OR_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define HEARTH_SAME_OR_APART _Pragma("GCC ivdep")
#endif
/// For functions called in such loops, so that they are compiled into each clone.
#define HEARTH_INLINE inline __attribute__((always_inline))

namespace hearth {

/// exp(x) to about 1 ulp: 2^n times a polynomial of degree 6 on [-ln 2 / 2, ln 2 / 2] (Cody and
/// Waite's reduction). 0 below -87.33 (no denormals), infinity above 88.72, NaN for NaN.
HEARTH_INLINE float fast_exp(float x) {
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x < -87.4f ? -87.4f : (x > 89.0f ? 89.0f : x);
  const float shifted = clamped * 1.44269504088896341f + kRounder;
  const float n = shifted - kRounder;
  float r = std::fma(n, -0.693359375f, clamped);
  r = std::fma(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = std::fma(p, r, 1.3981999507e-3f);
  p = std::fma(p, r, 8.3334519073e-3f);
  p = std::fma(p, r, 4.1665795894e-2f);
  p = std::fma(p, r, 1.6666665459e-1f);
  p = std::fma(p, r, 5.0000001201e-1f);
  p = std::fma(p, r * r, r) + 1.0f;
  // 2^n in two factors, as 2^128 is no float.
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRounder);
  const int32_t half = exponent >> 1;
  const float low = std::bit_cast<float>((half + 127) << 23);
  const float high = std::bit_cast<float>((exponent - half + 127) << 23);
  const float result = p * low * high;
  return x < -87.33f ? 0.0f : result;
}

HEARTH_INLINE float sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }
HEARTH_INLINE float silu(float x) { return x * sigmoid(x); }

}  // namespace hearth
