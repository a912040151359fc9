// The innermost parts of the packed f32 products: pack operands into strips, and multiply one strip
// of A by one strip of B (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
// 2008).
//
// Every element is a sum of fused multiply-adds over k, in order, from zero; only the sum is added
// to C. So its bits depend neither on the vector length nor on the rest of the strip.
#pragma once

#include "cpu_kernels/operand.h"

namespace hearth {

/// Memory to prefetch while a strip is multiplied. The kernel prefetches a line at every second
/// step; line i is at byte at + i / 16 * outer + i % 16 * inner. It is never read, so any address
/// is valid.
struct Ahead {
  const std::byte* at = nullptr;
  int64_t inner = 0, outer = 0;
};

struct MicroKernel {
  const char* name;
  int rows;         // most rows of a strip of A
  int lanes;        // columns of a full strip of B
  int left_stride;  // floats between columns of a packed strip of A, at least `rows`

  /// Floats of a packed strip of A. It has one extra column, so that strips do not share cache
  /// sets.
  int64_t left_strip(int64_t k) const { return (k + 1) * left_stride; }

  /// Packs A into strips of `rows` rows, left_strip(a.cols()) floats apart. A strip is [a.cols(),
  /// left_stride], column by column. `round` rounds to bf16. Floats past the last row are
  /// undefined.
  void (*pack_left)(const Operand& a, bool round, int64_t rows, float* target);
  /// Packs B into strips of `lanes` columns, `strip` floats apart. A strip is [b.rows(), lanes].
  void (*pack_right)(const Operand& b, bool round, int64_t strip, float* target);
  /// c[i, j] (+)= sum over p < k of a[p * left_stride + i] * b[p * ldb + j] for i < m, j < n;
  /// 1 <= m <= rows, 1 <= n <= lanes.
  void (*run)(int64_t m, int64_t n, int64_t k, const float* a, const float* b, int64_t ldb,
              float* c, int64_t ldc, bool add, Ahead ahead);
};

extern const MicroKernel kAvx512Kernel;
extern const MicroKernel kAvx2Kernel;

/// The widest kernel that this machine supports and HEARTH_ISA allows.
const MicroKernel& micro_kernel();

}  // namespace hearth
