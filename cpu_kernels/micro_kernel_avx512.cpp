// 14 rows by 32 columns: 28 accumulators, two registers of B and one of A of the 32 there are.
#include <immintrin.h>

#include "cpu_kernels/micro_kernel.h"

#define HEARTH_TARGET __attribute__((target("avx512f")))

namespace hearth {
namespace {

struct Vector {
  using Register = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;
  HEARTH_TARGET static Mask mask(int64_t n) {
    return static_cast<Mask>(n >= kLanes ? 0xffffu : (1u << n) - 1u);
  }
  HEARTH_TARGET static Register zero() { return _mm512_setzero_ps(); }
  HEARTH_TARGET static Register load(const float* p) { return _mm512_loadu_ps(p); }
  HEARTH_TARGET static Register load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  HEARTH_TARGET static void store(float* p, Register x) { _mm512_storeu_ps(p, x); }
  HEARTH_TARGET static void store(float* p, Register x, Mask m) { _mm512_mask_storeu_ps(p, m, x); }
  HEARTH_TARGET static Register broadcast(const float* p) { return _mm512_set1_ps(*p); }
  HEARTH_TARGET static Register fma(Register a, Register b, Register c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  HEARTH_TARGET static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
};

}  // namespace

#include "cpu_kernels/micro_kernel_body.h"

const MicroKernel kAvx512Kernel = {"avx512", 14, 32, strip_rows<14>};

}  // namespace hearth
