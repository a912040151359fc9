// The body of a micro-kernel, compiled once per instruction set. The including file defines
// HEARTH_TARGET (the function attribute) and, in an unnamed namespace, `Vector` with load, store,
// broadcast and multiply-add. Private to micro_kernel_*.cpp.

namespace {

// Strips stream from the L2 cache; prefetch runs this many columns of A ahead.
constexpr int64_t kNear = 8;
constexpr int64_t kChunk = 32;  // steps in which 16 lines are prefetched (Ahead)

template <int kRows, int kVectors, bool kFull>
HEARTH_APART HEARTH_TARGET void strip_product(int64_t n, int64_t k, const float* a, const float* b,
                                              int64_t ldb, float* c, int64_t ldc, bool add,
                                              Ahead ahead) {
  using Register = Vector::Register;
  constexpr int kLast = (kVectors - 1) * Vector::kLanes;
  const Vector::Mask mask = Vector::mask(n - kLast);
  Register sum[kRows][kVectors];
  HEARTH_UNROLL(16)
  for (int i = 0; i < kRows; ++i) {
    HEARTH_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sum[i][v] = Vector::zero();
  }
  // Prefetch C a few rows at a time, because all rows at once would stall the other loads. If k is
  // a few hundred, all rows arrive in time.
  const int64_t rows_a_chunk = k >= kRows * kChunk / 4 ? 4 : kRows;
  int64_t asked = 0;
  for (int64_t left_over = k; left_over > 0; left_over -= kChunk) {
    const std::byte* at = ahead.at;
    for (const int64_t end = asked + rows_a_chunk; asked < std::min<int64_t>(end, kRows); ++asked) {
      __builtin_prefetch(c + asked * ldc, 1);
      if (kVectors > 1) __builtin_prefetch(c + asked * ldc + Vector::kLanes, 1);
    }
    for (int64_t p = std::min(left_over, kChunk); p > 0; --p) {
      Register right[kVectors];
      if (p % 2 == 0) {
        __builtin_prefetch(at, 0, 2);
        at += ahead.inner;
      }
      __builtin_prefetch(a + kNear * Vector::kLanes);
      HEARTH_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        const float* from = b + v * Vector::kLanes;
        __builtin_prefetch(from + kNear * ldb);
        right[v] = kFull || v + 1 < kVectors ? Vector::load(from) : Vector::load(from, mask);
      }
      HEARTH_UNROLL(16)
      for (int i = 0; i < kRows; ++i) {
        const Register left = Vector::broadcast(a + i);
        HEARTH_UNROLL(4)
        for (int v = 0; v < kVectors; ++v) sum[i][v] = Vector::fma(left, right[v], sum[i][v]);
      }
      a += Vector::kLanes;
      b += ldb;
    }
    ahead.at += ahead.outer;
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
                              int64_t ldb, float* c, int64_t ldc, bool add, Ahead ahead) {
  if constexpr (kRows > 1) {
    if (m < kRows) return strip_rows<kRows - 1>(m, n, k, a, b, ldb, c, ldc, add, ahead);
  }
  if (n == 2 * Vector::kLanes) {
    strip_product<kRows, 2, true>(n, k, a, b, ldb, c, ldc, add, ahead);
  } else if (n > Vector::kLanes) {
    strip_product<kRows, 2, false>(n, k, a, b, ldb, c, ldc, add, ahead);
  } else if (n == Vector::kLanes) {
    strip_product<kRows, 1, true>(n, k, a, b, ldb, c, ldc, add, ahead);
  } else {
    strip_product<kRows, 1, false>(n, k, a, b, ldb, c, ldc, add, ahead);
  }
}

}  // namespace
