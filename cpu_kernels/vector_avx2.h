// Eight AVX2 lanes for the packed products. Private to micro_kernel_avx2.cpp and packing.cpp. They
// define HEARTH_TARGET as empty, because the program's baseline includes AVX2.
#include <immintrin.h>

#include "base/dtype.h"
#include "cpu_kernels/unroll.h"

namespace hearth {
namespace {

struct Vector {
  using Register = __m256;
  using Mask = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kDepth = 1;  // elements of k in a lane of a strip
  static Mask mask(int64_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
  }
  static Register zero() { return _mm256_setzero_ps(); }
  static Register load(const float* p) { return _mm256_loadu_ps(p); }
  HEARTH_APART static Register load(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static Register load(const bf16* p) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
  }
  static Register load(const f16* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  /// kLanes * kDepth elements of a row.
  template <class T>
  static Register read(const T* p) {
    return load(p);
  }
  /// kLanes columns of kDepth rows.
  template <class T>
  static Register zip(const T* first, const T*) {
    return load(first);
  }
  static void store(float* p, Register x) { _mm256_storeu_ps(p, x); }
  HEARTH_APART static void store(float* p, Register x, Mask m) { _mm256_maskstore_ps(p, m, x); }
  static Register broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static Register fma(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
  static Register add(Register a, Register b) { return _mm256_add_ps(a, b); }

  /// To the nearest bf16, as f32; the same bits as round_to_bf16.
  static Register round(Register x) {
    const __m256i u = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    const __m256i bits = _mm256_blendv_epi8(up, quiet, _mm256_castps_si256(nan));
    return _mm256_castsi256_ps(
        _mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }

  /// r[j] lane i becomes r[i] lane j.
  static void transpose(Register r[kLanes]) {
    Register t[kLanes], s[kLanes];
    for (int i = 0; i < kLanes; i += 2) {
      t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < kLanes; i += 4) {
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
};

}  // namespace
}  // namespace hearth
