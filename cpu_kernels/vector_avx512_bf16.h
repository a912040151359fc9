// Sixteen lanes of pairs of bf16, for the packed products and for rounding rows. Private to the files
// that define HEARTH_TARGET. Pairs lie in float registers, whose bits no instruction here changes.
#include "cpu_kernels/vector_avx512.h"

namespace hearth {
namespace {

struct PairVector : Vector {
  static constexpr int kDepth = 2;

  /// 32 elements of a row as 16 pairs. Denormals become zeros, as the products would take them.
  HEARTH_TARGET static Register read(const float* p) {
    return pairs(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(p + kLanes), _mm512_loadu_ps(p)));
  }
  HEARTH_TARGET static Register read(const bf16* p) {
    return _mm512_castsi512_ps(_mm512_loadu_si512(p));
  }
  HEARTH_TARGET static Register read(const f16* p) {
    return pairs(_mm512_cvtne2ps_pbh(load(p + kLanes), load(p)));
  }

  /// Pairs of one column each: 16 elements of a row, and those of the next one or zeros.
  template <class T>
  HEARTH_TARGET static Register zip(const T* first, const T* second) {
    return zip(load(first), second != nullptr ? load(second) : zero());
  }
  HEARTH_TARGET static Register zip(const bf16* first, const bf16* second) {
    const __m512i next = second != nullptr ? widened(second) : _mm512_setzero_si512();
    return _mm512_castsi512_ps(_mm512_or_si512(widened(first), _mm512_slli_epi32(next, 16)));
  }

  /// sum + the dot products of the pairs.
  HEARTH_TARGET static Register fma(Register a, Register b, Register sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
  HEARTH_TARGET static Register round(Register x) { return x; }  // `read` and `zip` did

 private:
  HEARTH_TARGET static Register pairs(__m512bh x) { return (__m512)x; }
  HEARTH_TARGET static __m512i widened(const bf16* p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  HEARTH_TARGET static Register zip(Register first, Register second) {
    // Halves of the register hold the rows; their elements alternate in the pairs.
    const __m512i places = _mm512_add_epi16(
        _mm512_set1_epi32(16 << 16),
        _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                           _mm512_set1_epi32(0x00010001)));
    const auto rows = (__m512i)_mm512_cvtne2ps_pbh(second, first);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(places, rows));
  }
};

}  // namespace
}  // namespace hearth
