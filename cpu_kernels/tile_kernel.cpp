#include "cpu_kernels/tile_kernel.h"

#if defined(__GNUC__) && !defined(__clang__)
// As in micro_kernel_avx512.cpp.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <algorithm>
#include <cstring>

#define HEARTH_TARGET __attribute__((target("avx512f,avx512bw,avx512bf16,amx-tile,amx-bf16")))
// gcc's intrinsics of tiles do not say that they read and write memory.
#define HEARTH_ORDERED asm volatile("" ::: "memory")

#include "cpu_kernels/vector_avx512_bf16.h"

namespace hearth::tiles {
namespace {

using Vector = PairVector;
constexpr int64_t kPair = 2;                // elements of k
constexpr int64_t kTiles = kSide * kStrip;  // pairs of 16 steps of a strip, which are two tiles
constexpr auto kBytes = static_cast<int64_t>(sizeof(float));

struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Vectors of pairs, from rows of a stored type.
template <class T>
struct Pairs {
  // Elements [0, n) of a row, n <= 32, then zeros.
  HEARTH_TARGET static Vector::Register along(const T* row, int64_t n) {
    if (n >= kDepth) return Vector::read(row);
    T part[kDepth] = {};
    std::memcpy(part, row, static_cast<size_t>(n) * sizeof(T));
    return Vector::read(part);
  }
  // Elements [0, 32) of two rows, side by side.
  HEARTH_TARGET static void zip(const T* first, const T* second, float* to) {
    Vector::store(to, Vector::zip(first, second));
    Vector::store(to + kSide, Vector::zip(first + kSide, second + kSide));
  }
  // Elements [p, p + 32) of 16 rows, as 16 steps of 16 columns.
  HEARTH_TARGET static void transpose(const T* const rows[kSide], int64_t p, float* to) {
    Vector::Register r[kSide];
    HEARTH_UNROLL(16)
    for (int64_t j = 0; j < kSide; ++j) r[j] = Vector::read(rows[j] + p);
    Vector::transpose(r);
    HEARTH_UNROLL(16)
    for (int64_t j = 0; j < kSide; ++j) Vector::store(to + j * kStrip, r[j]);
  }
  // Elements [0, n) of two rows, n <= 16, side by side. The second may be null: zeros.
  HEARTH_TARGET static Vector::Register across(const T* first, const T* second, int64_t n) {
    if (n >= kSide) return Vector::zip(first, second);
    T parts[2][kSide] = {};
    std::memcpy(parts[0], first, static_cast<size_t>(n) * sizeof(T));
    if (second != nullptr) std::memcpy(parts[1], second, static_cast<size_t>(n) * sizeof(T));
    return Vector::zip(parts[0], parts[1]);
  }
};

// The first and the second half of each quarter of the registers alternate in what is zipped.
template <>
HEARTH_TARGET void Pairs<bf16>::zip(const bf16* first, const bf16* second, float* to) {
  const __m512i quarters = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i x = _mm512_permutexvar_epi64(quarters, _mm512_loadu_si512(first));
  const __m512i y = _mm512_permutexvar_epi64(quarters, _mm512_loadu_si512(second));
  _mm512_storeu_si512(to, _mm512_unpacklo_epi16(x, y));
  _mm512_storeu_si512(to + kSide, _mm512_unpackhi_epi16(x, y));
}

// Four pairs of all rows at a time. Loads put those of every fourth row side by side, which takes
// no shuffle. What remains is to transpose 4 x 4 pairs in each quarter of the registers.
template <>
HEARTH_TARGET void Pairs<bf16>::transpose(const bf16* const rows[kSide], int64_t p, float* to) {
  const auto* const* const from = reinterpret_cast<const char* const*>(rows);
  HEARTH_UNROLL(4)
  for (int64_t q = 0; q < 4; ++q) {
    Vector::Register r[4];
    HEARTH_UNROLL(4)
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t at = 2 * p + 16 * q;
      const auto part = [&](int64_t row) {
        return _mm_loadu_ps(reinterpret_cast<const float*>(from[row] + at));
      };
      r[i] = _mm512_castps128_ps512(part(i));
      r[i] = _mm512_insertf32x4(r[i], part(4 + i), 1);
      r[i] = _mm512_insertf32x4(r[i], part(8 + i), 2);
      r[i] = _mm512_insertf32x4(r[i], part(12 + i), 3);
    }
    const __m512d low = _mm512_castps_pd(_mm512_unpacklo_ps(r[0], r[1])),
                  high = _mm512_castps_pd(_mm512_unpackhi_ps(r[0], r[1])),
                  low_next = _mm512_castps_pd(_mm512_unpacklo_ps(r[2], r[3])),
                  high_next = _mm512_castps_pd(_mm512_unpackhi_ps(r[2], r[3]));
    float* const step = to + 4 * q * kStrip;
    Vector::store(step, _mm512_castpd_ps(_mm512_unpacklo_pd(low, low_next)));
    Vector::store(step + kStrip, _mm512_castpd_ps(_mm512_unpackhi_pd(low, low_next)));
    Vector::store(step + 2 * kStrip, _mm512_castpd_ps(_mm512_unpacklo_pd(high, high_next)));
    Vector::store(step + 3 * kStrip, _mm512_castpd_ps(_mm512_unpackhi_pd(high, high_next)));
  }
}

// Where row i of A begins.
float* left_row(float* target, int64_t strip, int64_t i) {
  return target + i / kStrip * strip + i % kStrip * kSide;
}

// The memory's rows, as rows of A.
template <class T>
HEARTH_TARGET void pack_rows(const Operand& x, int64_t strip, float* target) {
  const OperandRows<T> source(x);
  const int64_t n = x.memory.cols;
  for (int64_t r = 0; r < x.memory.rows; ++r) {
    const T* const from = source[r];
    float* to = left_row(target, strip, r);
    for (int64_t i = 0; i < n; i += kDepth, to += kSide * kStrip) {
      Vector::store(to, Pairs<T>::along(from + i, n - i));
    }
  }
}

// The memory's columns, as rows of A: 16 of them at a time.
template <class T>
HEARTH_TARGET void pack_columns(const Operand& x, int64_t strip, float* target) {
  const OperandRows<T> source(x);
  const int64_t k = x.memory.rows, n = x.memory.cols;
  for (int64_t p = 0; p < k; p += kDepth) {
    for (int64_t i = 0; i < n; i += kSide) {
      Vector::Register r[kSide];
      for (int64_t j = 0; j < kSide; ++j) {
        const int64_t at = p + kPair * j;
        r[j] = at < k ? Pairs<T>::across(source[at] + i, at + 1 < k ? source[at + 1] + i : nullptr,
                                         n - i)
                      : Vector::zero();
      }
      Vector::transpose(r);
      float* const to = left_row(target, strip, i) + p / kPair * kStrip;
      for (int64_t j = 0; j < kSide; ++j) Vector::store(to + j * kSide, r[j]);
    }
  }
}

// The memory's rows, two of them a step of the strips.
template <class T>
HEARTH_TARGET void zip_rows(const Operand& x, int64_t strip, float* target) {
  const OperandRows<T> source(x);
  const int64_t k = x.memory.rows, n = x.memory.cols, end = steps(k);
  for (int64_t s = 0; s < end; ++s, target += kStrip) {
    const T* const first = kPair * s < k ? source[kPair * s] : nullptr;
    const T* const second = kPair * s + 1 < k ? source[kPair * s + 1] : nullptr;
    int64_t c = 0;
    if (second != nullptr) {
      for (; c + kStrip <= n; c += kStrip) {
        Pairs<T>::zip(first + c, second + c, target + c / kStrip * strip);
      }
    }
    for (; c < n; c += kSide) {
      float* const to = target + c / kStrip * strip + c % kStrip;
      Vector::store(
          to, first != nullptr
                  ? Pairs<T>::across(first + c, second != nullptr ? second + c : nullptr, n - c)
                  : Vector::zero());
    }
  }
}

// The memory's columns, as steps of the strips: 16 rows at a time.
template <class T>
HEARTH_TARGET void transpose_rows(const Operand& x, int64_t strip, float* target) {
  const OperandRows<T> source(x);
  const int64_t n = x.memory.rows, k = x.memory.cols;
  for (int64_t c = 0; c < n; c += kSide) {
    const T* row[kSide];
    for (int64_t j = 0; j < kSide; ++j) row[j] = source[std::min(c + j, n - 1)];
    float* to = target + c / kStrip * strip + c % kStrip;
    int64_t p = 0;
    for (; p + kDepth <= k; p += kDepth, to += kTiles) Pairs<T>::transpose(row, p, to);
    if (p < k) {
      Vector::Register r[kSide];
      HEARTH_UNROLL(16)
      for (int64_t j = 0; j < kSide; ++j) r[j] = Pairs<T>::along(row[j] + p, k - p);
      Vector::transpose(r);
      HEARTH_UNROLL(16)
      for (int64_t j = 0; j < kSide; ++j) Vector::store(to + j * kStrip, r[j]);
    }
  }
}

template <class F>
void with_type(const Operand& x, const F& f) {
  switch (x.memory.dtype) {
    case DType::f32: return f(float{});
    case DType::bf16: return f(bf16{});
    case DType::f16: return f(f16{});
    default: HEARTH_CHECK(false, "product: operands are f32, bf16 or f16");
  }
}

// The sums of up to four tiles, to rows `ld` floats apart.
template <bool kTall, bool kWide>
HEARTH_TARGET void sum(int64_t steps, const float* a, const float* b, float* to, int64_t ld,
                       Coming& read, Coming& written) {
  HEARTH_ORDERED;
  _tile_zero(0);
  if (kWide) _tile_zero(1);
  if (kTall) _tile_zero(2);
  if (kTall && kWide) _tile_zero(3);
  for (int64_t step = 0; step < steps; step += kSide, a += kTiles, b += kTiles) {
    _tile_loadd(4, a, kSide * kBytes);
    _tile_loadd(6, b, kStrip * kBytes);
    _tile_dpbf16ps(0, 4, 6);
    if (kWide) {
      _tile_loadd(7, b + kSide, kStrip * kBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (kTall) {
      _tile_loadd(5, a + kTiles / 2, kSide * kBytes);
      _tile_dpbf16ps(2, 5, 6);
      if (kWide) _tile_dpbf16ps(3, 5, 7);
    }
    read.fetch<0>(8);
    written.fetch<1>(2);
  }
  _tile_stored(0, to, ld * kBytes);
  if (kWide) _tile_stored(1, to + kSide, ld * kBytes);
  if (kTall) _tile_stored(2, to + kSide * ld, ld * kBytes);
  if (kTall && kWide) _tile_stored(3, to + kSide * ld + kSide, ld * kBytes);
  HEARTH_ORDERED;
}

// Up to 16 elements of a row of C.
HEARTH_TARGET void put(const float* product, const float* sums, int64_t n, float* c, bool add) {
  auto x = Vector::load(product);
  if (sums != nullptr) x = Vector::add(Vector::load(sums), x);
  if (n >= kSide) {
    Vector::store(c, add ? Vector::add(Vector::load(c), x) : x);
  } else {
    const Vector::Mask some = Vector::mask(n);
    Vector::store(c, add ? Vector::add(Vector::load(c, some), x) : x, some);
  }
}

HEARTH_TARGET void lend() {
  const TileConfig config;
  HEARTH_ORDERED;
  _tile_loadconfig(&config);
}
HEARTH_TARGET void give_back() { _tile_release(); }

}  // namespace

Scope::Scope() { lend(); }
Scope::~Scope() { give_back(); }

void pack_left(const Operand& a, int64_t strip, float* target) {
  with_type(a, [&]<class T>(T) {
    a.transposed ? pack_columns<T>(a, strip, target) : pack_rows<T>(a, strip, target);
  });
}

void pack_right(const Operand& b, int64_t strip, float* target) {
  with_type(b, [&]<class T>(T) {
    b.transposed ? transpose_rows<T>(b, strip, target) : zip_rows<T>(b, strip, target);
  });
}

HEARTH_TARGET void multiply(int64_t m, int64_t n, int64_t steps, const float* a, const float* b,
                            const float* sums, float* c, int64_t ldc, bool add, Coming& read,
                            Coming& written) {
  alignas(64) float product[kStrip * kStrip];
  const bool in_place = m == kStrip && n == kStrip && sums == nullptr && !add;
  float* const to = in_place ? c : product;
  const int64_t ld = in_place ? ldc : kStrip;
  if (m > kSide) {
    n > kSide ? sum<true, true>(steps, a, b, to, ld, read, written)
              : sum<true, false>(steps, a, b, to, ld, read, written);
  } else {
    n > kSide ? sum<false, true>(steps, a, b, to, ld, read, written)
              : sum<false, false>(steps, a, b, to, ld, read, written);
  }
  if (in_place) return;
  for (int64_t i = 0; i < m; ++i) {
    const int64_t at = i * kStrip;
    put(product + at, sums != nullptr ? sums + at : nullptr, n, c + i * ldc, add);
    if (n <= kSide) continue;
    put(product + at + kSide, sums != nullptr ? sums + at + kSide : nullptr, n - kSide,
        c + i * ldc + kSide, add);
  }
}

}  // namespace hearth::tiles
