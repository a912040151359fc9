// 6 rows by 16 columns: 12 accumulators, two registers of B and one of A of the 16 there are.
#include <immintrin.h>

#include "cpu_kernels/micro_kernel.h"

#define HEARTH_TARGET

namespace hearth {
namespace {

struct Vector {
  using Register = __m256;
  using Mask = __m256i;
  static constexpr int kLanes = 8;
  static Mask mask(int64_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
  }
  static Register zero() { return _mm256_setzero_ps(); }
  static Register load(const float* p) { return _mm256_loadu_ps(p); }
  static Register load(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static void store(float* p, Register x) { _mm256_storeu_ps(p, x); }
  static void store(float* p, Register x, Mask m) { _mm256_maskstore_ps(p, m, x); }
  static Register broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static Register fma(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
  static Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
};

}  // namespace

#include "cpu_kernels/micro_kernel_body.h"

const MicroKernel kAvx2Kernel = {"avx2", 6, 16, strip_rows<6>};

}  // namespace hearth
