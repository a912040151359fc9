// The body of a micro kernel, once for each instruction set: the including file defines
// HEARTH_TARGET (the function attribute) and, in an unnamed namespace, `Vector` with load, store,
// broadcast and multiply-add. Private to micro_kernel_*.cpp.

#if defined(__clang__)
#define HEARTH_UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define HEARTH_PRAGMA(text) _Pragma(#text)
#define HEARTH_UNROLL(n) HEARTH_PRAGMA(GCC unroll n)
#endif

namespace {

template <int kRows, int kVectors, bool kFull>
HEARTH_TARGET void strip_product(int64_t n, int64_t k, const float* a, const float* b, int64_t ldb,
                                 float* c, int64_t ldc, bool add) {
  using Register = Vector::Register;
  constexpr int kLast = (kVectors - 1) * Vector::kLanes;
  const Vector::Mask mask = Vector::mask(n - kLast);
  Register sum[kRows][kVectors];
  HEARTH_UNROLL(16)
  for (int i = 0; i < kRows; ++i) {
    HEARTH_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      sum[i][v] = Vector::zero();
      __builtin_prefetch(c + i * ldc + v * Vector::kLanes, 1);
    }
  }
  for (int64_t p = 0; p < k; ++p) {
    Register right[kVectors];
    HEARTH_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      const float* from = b + p * ldb + v * Vector::kLanes;
      right[v] = kFull || v + 1 < kVectors ? Vector::load(from) : Vector::load(from, mask);
    }
    HEARTH_UNROLL(16)
    for (int i = 0; i < kRows; ++i) {
      const Register left = Vector::broadcast(a + i * kStripStride + p);
      HEARTH_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) sum[i][v] = Vector::fma(left, right[v], sum[i][v]);
    }
  }
  HEARTH_UNROLL(16)
  for (int i = 0; i < kRows; ++i) {
    HEARTH_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      float* to = c + i * ldc + v * Vector::kLanes;
      if (kFull || v + 1 < kVectors) {
        Vector::store(to, add ? Vector::add(Vector::load(to), sum[i][v]) : sum[i][v]);
      } else {
        Vector::store(to, add ? Vector::add(Vector::load(to, mask), sum[i][v]) : sum[i][v], mask);
      }
    }
  }
}

template <int kRows>
HEARTH_TARGET void strip_rows(int64_t m, int64_t n, int64_t k, const float* a, const float* b,
                              int64_t ldb, float* c, int64_t ldc, bool add) {
  if constexpr (kRows > 1) {
    if (m < kRows) return strip_rows<kRows - 1>(m, n, k, a, b, ldb, c, ldc, add);
  }
  if (n == 2 * Vector::kLanes) {
    strip_product<kRows, 2, true>(n, k, a, b, ldb, c, ldc, add);
  } else if (n > Vector::kLanes) {
    strip_product<kRows, 2, false>(n, k, a, b, ldb, c, ldc, add);
  } else if (n == Vector::kLanes) {
    strip_product<kRows, 1, true>(n, k, a, b, ldb, c, ldc, add);
  } else {
    strip_product<kRows, 1, false>(n, k, a, b, ldb, c, ldc, add);
  }
}

}  // namespace
