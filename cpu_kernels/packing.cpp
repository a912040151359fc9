#include "cpu_kernels/packing.h"

#include <immintrin.h>

#include <algorithm>

#include "base/dtype.h"

namespace hearth {
namespace {

// f32 to the nearest bf16, as f32; the same bits as round_to_bf16.
__m256 rounded(__m256 x) {
  const __m256i u = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  const __m256i bits = _mm256_blendv_epi8(up, quiet, _mm256_castps_si256(nan));
  return _mm256_castsi256_ps(
      _mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
}

// One stored type: eight elements or one as f32.
struct F32 {
  using Element = float;
  static __m256 load(const float* p) { return _mm256_loadu_ps(p); }
  static float one(float x) { return x; }
};
struct Bf16 {
  using Element = bf16;
  static __m256 load(const bf16* p) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
  }
  static float one(bf16 x) { return to_float(x); }
};
struct F16 {
  using Element = f16;
  static __m256 load(const f16* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static float one(f16 x) { return _cvtsh_ss(x.bits); }
};

template <class T, bool kRound>
struct Reader {
  using Element = typename T::Element;
  static __m256 load(const Element* p) { return kRound ? rounded(T::load(p)) : T::load(p); }
  static float one(Element x) { return kRound ? round_to_bf16(T::one(x)) : T::one(x); }
};

// f(Reader) for the type; bf16 is never rounded again.
template <class F>
void for_reader(DType type, bool round, F&& f) {
  switch (type) {
    case DType::f32: return round ? f(Reader<F32, true>{}) : f(Reader<F32, false>{});
    case DType::bf16: return f(Reader<Bf16, false>{});
    case DType::f16: return round ? f(Reader<F16, true>{}) : f(Reader<F16, false>{});
    default: HEARTH_CHECK(false, "product: operands are f32, bf16 or f16");
  }
}

template <class R>
void copy_row(const typename R::Element* source, float* target, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(target + i, R::load(source + i));
  for (; i < n; ++i) target[i] = R::one(source[i]);
}

void transpose8(__m256 r[8]) {
  __m256 t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  __m256 s[8];
  for (int i = 0; i < 8; i += 4) {
    s[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    s[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    s[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    s[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(s[i], s[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(s[i], s[i + 4], 0x31);
  }
}

// target[j * target_stride + i] = source[i * source_stride + j] for i < rows, j < cols. Some columns
// at a time, so that the part of the target that is written to stays in the first cache.
template <class R>
void transpose_block(const typename R::Element* source, int64_t source_stride, int64_t rows,
                     int64_t cols, float* target, int64_t target_stride) {
  constexpr int64_t kColumns = 64;
  for (int64_t begin = 0; begin < cols; begin += kColumns) {
    const int64_t end = std::min(cols, begin + kColumns);
    int64_t i = 0;
    for (; i + 8 <= rows; i += 8) {
      const auto* from = source + i * source_stride;
      int64_t j = begin;
      for (; j + 8 <= end; j += 8) {
        __m256 r[8];
        for (int l = 0; l < 8; ++l) r[l] = R::load(from + l * source_stride + j);
        transpose8(r);
        for (int l = 0; l < 8; ++l) _mm256_storeu_ps(target + (j + l) * target_stride + i, r[l]);
      }
      for (; j < end; ++j) {
        for (int l = 0; l < 8; ++l) {
          target[j * target_stride + i + l] = R::one(from[l * source_stride + j]);
        }
      }
    }
    for (; i < rows; ++i) {
      for (int64_t j = begin; j < end; ++j) {
        target[j * target_stride + i] = R::one(source[i * source_stride + j]);
      }
    }
  }
}

}  // namespace

Operand Operand::block(int64_t r, int64_t m, int64_t c, int64_t n) const {
  if (transposed) {
    std::swap(r, c);
    std::swap(m, n);
  }
  const auto* from = static_cast<const std::byte*>(memory.data) +
                     static_cast<size_t>(r * memory.stride + c) * size_of(memory.dtype);
  return {ConstView(from, memory.dtype, m, n, memory.stride), transposed};
}

void pack_left(const Operand& a, bool round, float* target) {
  const ConstView& m = a.memory;
  for_reader(m.dtype, round, [&](auto reader) {
    using R = decltype(reader);
    if (a.transposed) {
      transpose_block<R>(m.as<typename R::Element>(), m.stride, m.rows, m.cols, target,
                         kStripStride);
    } else {
      for (int64_t i = 0; i < m.rows; ++i) {
        copy_row<R>(m.row<typename R::Element>(i), target + i * kStripStride, m.cols);
      }
    }
  });
}

void pack_right(const Operand& b, bool round, int64_t lanes, float* target) {
  const ConstView& m = b.memory;
  const int64_t depth = b.rows();
  for_reader(m.dtype, round, [&](auto reader) {
    using R = decltype(reader);
    for (int64_t c = 0; c < b.cols(); c += lanes) {
      const int64_t n = std::min(lanes, b.cols() - c);
      float* strip = target + c * depth;
      if (b.transposed) {
        transpose_block<R>(m.row<typename R::Element>(c), m.stride, n, depth, strip, lanes);
      } else {
        for (int64_t p = 0; p < depth; ++p) {
          copy_row<R>(m.row<typename R::Element>(p) + c, strip + p * lanes, n);
        }
      }
    }
  });
}

void transpose(const float* source, int64_t source_stride, int64_t rows, int64_t cols,
               const float* add, float* target, int64_t target_stride) {
  transpose_block<Reader<F32, false>>(source, source_stride, rows, cols, target, target_stride);
  if (!add) return;
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < rows; ++i) target[j * target_stride + i] += add[i];
  }
}

void load_row(DType type, const void* source, bool round, float* target, int64_t n) {
  for_reader(type, round, [&](auto reader) {
    using R = decltype(reader);
    copy_row<R>(static_cast<const typename R::Element*>(source), target, n);
  });
}

}  // namespace hearth
