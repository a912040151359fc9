// The innermost parts of the packed f32 products: operands are brought into strips, and one strip
// of A is multiplied with one strip of B (Goto and van de Geijn, Anatomy of High-Performance Matrix
// Multiplication, 2008).
//
// Every element is sum over k, in order, of fused multiply-adds from zero, and only then added to
// what C holds. So its bits depend neither on the vector length nor on what else is in the strip.
#pragma once

#include "cpu_kernels/operand.h"

namespace hearth {

/// Memory that is asked for while a strip is multiplied: at every second step, the i-th time the
/// cache line of at + i / 16 * outer + i % 16 * inner bytes. It is never read, so any address is
/// good.
struct Ahead {
  const std::byte* at = nullptr;
  int64_t inner = 0, outer = 0;
};

struct MicroKernel {
  const char* name;
  int rows;         // most rows of A in a strip
  int lanes;        // columns of B in a full strip
  int left_stride;  // floats from one column of a packed strip of A to the next, at least `rows`

  /// Floats of a packed strip of A; one column more than there are, so that strips do not share
  /// cache sets.
  int64_t left_strip(int64_t k) const { return (k + 1) * left_stride; }

  /// Strips of `rows` rows of A, left_strip(a.cols()) apart, each [a.cols(), left_stride]: column by
  /// column. Rounded to bf16 with `round`; the floats past the last row are left undefined.
  void (*pack_left)(const Operand& a, bool round, int64_t rows, float* target);
  /// Strips of `lanes` columns of B, `strip` floats apart, each [b.rows(), lanes].
  void (*pack_right)(const Operand& b, bool round, int64_t strip, float* target);
  /// c[i, j] (+)= sum over p < k of a[p * left_stride + i] * b[p * ldb + j] for i < m, j < n;
  /// 1 <= m <= rows, 1 <= n <= lanes.
  void (*run)(int64_t m, int64_t n, int64_t k, const float* a, const float* b, int64_t ldb,
              float* c, int64_t ldc, bool add, Ahead ahead);
};

extern const MicroKernel kAvx512Kernel;
extern const MicroKernel kAvx2Kernel;

/// The widest one that this machine has and HEARTH_ISA allows.
const MicroKernel& micro_kernel();

}  // namespace hearth
