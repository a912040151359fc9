// Sixteen AVX-512 lanes for the packed products. Private to micro_kernel_avx512.cpp, which defines
// HEARTH_TARGET.
#include <immintrin.h>

#include "base/dtype.h"
#include "cpu_kernels/unroll.h"

namespace hearth {
namespace {

struct Vector {
  using Register = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;
  static constexpr int kDepth = 1;  // elements of k in a lane of a strip
  HEARTH_TARGET static Mask mask(int64_t n) {
    return static_cast<Mask>(n >= kLanes ? 0xffffu : (1u << n) - 1u);
  }
  HEARTH_TARGET static Register zero() { return _mm512_setzero_ps(); }
  HEARTH_TARGET static Register load(const float* p) { return _mm512_loadu_ps(p); }
  HEARTH_APART HEARTH_TARGET static Register load(const float* p, Mask m) {
    return _mm512_maskz_loadu_ps(m, p);
  }
  HEARTH_TARGET static Register load(const bf16* p) {
    const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
  }
  HEARTH_TARGET static Register load(const f16* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  /// kLanes * kDepth elements of a row.
  template <class T>
  HEARTH_TARGET static Register read(const T* p) {
    return load(p);
  }
  /// kLanes columns of kDepth rows.
  template <class T>
  HEARTH_TARGET static Register zip(const T* first, const T*) {
    return load(first);
  }
  HEARTH_TARGET static void store(float* p, Register x) { _mm512_storeu_ps(p, x); }
  HEARTH_APART HEARTH_TARGET static void store(float* p, Register x, Mask m) {
    _mm512_mask_storeu_ps(p, m, x);
  }
  HEARTH_TARGET static Register broadcast(const float* p) { return _mm512_set1_ps(*p); }
  HEARTH_TARGET static Register fma(Register a, Register b, Register c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  HEARTH_TARGET static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }

  /// To the nearest bf16, as f32; the same bits as round_to_bf16.
  HEARTH_TARGET static Register round(Register x) {
    const __m512i u = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i bits = _mm512_mask_or_epi32(up, nan, u, _mm512_set1_epi32(0x400000));
    return _mm512_castsi512_ps(
        _mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }

  /// r[j] lane i becomes r[i] lane j.
  HEARTH_TARGET static void transpose(Register r[kLanes]) {
    Register t[kLanes], s[kLanes];
    HEARTH_UNROLL(16)
    for (int i = 0; i < kLanes; i += 2) {
      t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
      t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    HEARTH_UNROLL(16)
    for (int i = 0; i < kLanes; i += 4) {
      s[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
      s[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
      s[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
      s[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    // Quarter q of s[4 g + i] now holds rows 4 g .. 4 g + 3 of column 4 q + i.
    HEARTH_UNROLL(16)
    for (int i = 0; i < 4; ++i) {
      const Register even = _mm512_shuffle_f32x4(s[i], s[4 + i], 0x88);
      const Register odd = _mm512_shuffle_f32x4(s[i], s[4 + i], 0xdd);
      const Register even_high = _mm512_shuffle_f32x4(s[8 + i], s[12 + i], 0x88);
      const Register odd_high = _mm512_shuffle_f32x4(s[8 + i], s[12 + i], 0xdd);
      r[i] = _mm512_shuffle_f32x4(even, even_high, 0x88);
      r[4 + i] = _mm512_shuffle_f32x4(odd, odd_high, 0x88);
      r[8 + i] = _mm512_shuffle_f32x4(even, even_high, 0xdd);
      r[12 + i] = _mm512_shuffle_f32x4(odd, odd_high, 0xdd);
    }
  }
};

}  // namespace
}  // namespace hearth
