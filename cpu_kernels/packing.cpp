#include "cpu_kernels/packing.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/dtype.h"
#include "base/error.h"

#define HEARTH_TARGET
#include "cpu_kernels/vector_avx2.h"

namespace hearth {
namespace {

constexpr int64_t kLanes = Vector::kLanes;

template <bool kRound, class T>
void copy_row(const void* from, float* target, int64_t n) {
  const T* source = static_cast<const T*>(from);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto x = Vector::load(source + i);
    Vector::store(target + i, kRound ? Vector::round(x) : x);
  }
  for (; i < n; ++i) {
    float x;
    if constexpr (std::is_same_v<T, float>) {
      x = source[i];
    } else if constexpr (std::is_same_v<T, f16>) {
      x = _cvtsh_ss(source[i].bits);
    } else {
      x = to_float(source[i]);
    }
    target[i] = kRound ? round_to_bf16(x) : x;
  }
}

// Of eight elements, in the lower halves of the lanes.
__m256i rounded_bits(const float* p) {
  return _mm256_srli_epi32(_mm256_castps_si256(Vector::round(Vector::load(p))), 16);
}

}  // namespace

void transpose(const float* source, int64_t source_stride, int64_t rows, int64_t cols,
               float* target, int64_t target_stride) {
  // Some columns at a time, so that the part of the target that is written to stays in the first
  // cache.
  constexpr int64_t kColumns = 64;
  for (int64_t begin = 0; begin < cols; begin += kColumns) {
    const int64_t end = std::min(cols, begin + kColumns);
    int64_t i = 0;
    for (; i + kLanes <= rows; i += kLanes) {
      const float* from = source + i * source_stride;
      int64_t j = begin;
      for (; j + kLanes <= end; j += kLanes) {
        Vector::Register r[kLanes];
        for (int l = 0; l < kLanes; ++l) r[l] = Vector::load(from + l * source_stride + j);
        Vector::transpose(r);
        for (int l = 0; l < kLanes; ++l) Vector::store(target + (j + l) * target_stride + i, r[l]);
      }
      for (; j < end; ++j) {
        for (int l = 0; l < kLanes; ++l) {
          target[j * target_stride + i + l] = from[l * source_stride + j];
        }
      }
    }
    for (; i < rows; ++i) {
      for (int64_t j = begin; j < end; ++j) {
        target[j * target_stride + i] = source[i * source_stride + j];
      }
    }
  }
}

void load_row(DType type, const void* source, bool round, float* target, int64_t n) {
  switch (type) {
    case DType::f32:
      return round ? copy_row<true, float>(source, target, n)
                   : copy_row<false, float>(source, target, n);
    case DType::bf16: return copy_row<false, bf16>(source, target, n);
    case DType::f16:
      return round ? copy_row<true, f16>(source, target, n)
                   : copy_row<false, f16>(source, target, n);
    default: HEARTH_CHECK(false, "product: operands are f32, bf16 or f16");
  }
}

void store_rounded(const float* source, bf16* target, int64_t n) {
  constexpr int64_t kBlock = 2 * kLanes;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    const __m256i low = rounded_bits(source + i), high = rounded_bits(source + i + kLanes);
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + i), both);
  }
  for (; i < n; ++i) {
    float x = 0;
    std::memcpy(&x, source + i, sizeof x);  // before what may lie in its place
    const bf16 rounded = to_bf16(x);
    std::memcpy(static_cast<void*>(target + i), &rounded, sizeof rounded);
  }
}

}  // namespace hearth
