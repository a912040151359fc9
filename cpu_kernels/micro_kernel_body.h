// The body of a micro-kernel, compiled once per instruction set. The including file defines
// HEARTH_TARGET (the function attribute) and, in an unnamed namespace, `Vector` with load, store,
// broadcast and multiply-add. Private to micro_kernel_*.cpp.

namespace {

// Strips stream from the L2 cache; prefetch runs this many columns of A ahead.
constexpr int64_t kNear = 8;
constexpr int64_t kChunk = 32;  // steps in which 16 lines each are prefetched (Ahead)

template <int kRows, bool kByRows, int kVectors, bool kFull>
HEARTH_APART HEARTH_TARGET void strip_product(int64_t n, int64_t steps, const float* a,
                                              const float* b, int64_t ldb, float* c, int64_t ldc,
                                              bool add, const Ahead& ahead) {
  using Register = Vector::Register;
  constexpr int kLast = (kVectors - 1) * Vector::kLanes;
  const Vector::Mask mask = Vector::mask(n - kLast);
  Register sum[kRows][kVectors];
  HEARTH_UNROLL(16)
  for (int i = 0; i < kRows; ++i) {
    HEARTH_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sum[i][v] = Vector::zero();
  }
  // Prefetch C a few rows at a time, because all rows at once would stall the other loads. With a few
  // hundred steps all rows arrive in time.
  const int64_t rows_a_chunk = steps >= kRows * kChunk / 4 ? 4 : kRows;
  int64_t asked = 0;
  // Nothing to prefetch is memory that is near.
  const auto lines = [&](const Lines& x) {
    return x.at != nullptr ? x : Lines{reinterpret_cast<const std::byte*>(a), 0, 0};
  };
  Lines even = lines(ahead.even), odd = lines(ahead.odd);
  for (int64_t left_over = steps; left_over > 0; left_over -= kChunk) {
    const std::byte *even_at = even.at, *odd_at = odd.at;
    for (const int64_t end = asked + rows_a_chunk; asked < std::min<int64_t>(end, kRows); ++asked) {
      __builtin_prefetch(c + asked * ldc, 1);
      if (kVectors > 1) __builtin_prefetch(c + asked * ldc + Vector::kLanes, 1);
    }
    for (int64_t p = std::min(left_over, kChunk); p > 0; --p) {
      Register right[kVectors];
      if (p % 2 == 0) {
        __builtin_prefetch(even_at, 0, 2);
        even_at += even.inner;
      } else {
        __builtin_prefetch(odd_at, 0, 2);
        odd_at += odd.inner;
      }
      if (!kByRows) __builtin_prefetch(a + kNear * Vector::kLanes);
      HEARTH_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        const float* from = b + v * Vector::kLanes;
        __builtin_prefetch(from + kNear * ldb);
        right[v] = kFull || v + 1 < kVectors ? Vector::load(from) : Vector::load(from, mask);
      }
      HEARTH_UNROLL(16)
      for (int i = 0; i < kRows; ++i) {
        const Register left = Vector::broadcast(a + (kByRows ? i * kLeftRow : i));
        HEARTH_UNROLL(4)
        for (int v = 0; v < kVectors; ++v) sum[i][v] = Vector::fma(left, right[v], sum[i][v]);
      }
      a += kByRows ? 1 : Vector::kLanes;
      b += ldb;
    }
    even.at += even.outer;
    odd.at += odd.outer;
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

template <int kRows, bool kByRows>
HEARTH_TARGET void strip_rows(int64_t m, int64_t n, int64_t steps, const float* a, const float* b,
                              int64_t ldb, float* c, int64_t ldc, bool add, const Ahead& ahead) {
  if constexpr (kRows > 1) {
    if (m < kRows) {
      return strip_rows<kRows - 1, kByRows>(m, n, steps, a, b, ldb, c, ldc, add, ahead);
    }
  }
  if (n == 2 * Vector::kLanes) {
    strip_product<kRows, kByRows, 2, true>(n, steps, a, b, ldb, c, ldc, add, ahead);
  } else if (n > Vector::kLanes) {
    strip_product<kRows, kByRows, 2, false>(n, steps, a, b, ldb, c, ldc, add, ahead);
  } else if (n == Vector::kLanes) {
    strip_product<kRows, kByRows, 1, true>(n, steps, a, b, ldb, c, ldc, add, ahead);
  } else {
    strip_product<kRows, kByRows, 1, false>(n, steps, a, b, ldb, c, ldc, add, ahead);
  }
}

template <int kRows>
void run_strip(int64_t m, int64_t n, int64_t steps, const float* a, bool by_rows, const float* b,
               int64_t ldb, float* c, int64_t ldc, bool add, const Ahead& ahead) {
  if (by_rows) {
    strip_rows<kRows, true>(m, n, steps, a, b, ldb, c, ldc, add, ahead);
  } else {
    strip_rows<kRows, false>(m, n, steps, a, b, ldb, c, ldc, add, ahead);
  }
}

}  // namespace
