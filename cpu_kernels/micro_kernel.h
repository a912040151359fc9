// The innermost parts of the packed products: pack operands into strips, and multiply one strip of A
// by one strip of B (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
// 2008).
//
//   A, a strip of up to 14 rows            B, a strip of 32 columns
//     by rows:    a00 a01 a02 ...            step 0:  b00 b01 b02 ... b0,31
//                 a10 a11 a12 ...            step 1:  b10 b11 b12 ... b1,31
//     or by steps, where memory has A
//     transposed: a00 a10 a20 ...
//                 a01 a11 a21 ...
//
// A lane is a float, and a step one element of k. In kernels of bf16 a lane is a pair of bf16, which
// are neighbours along k, and a step is two elements of k: the pair's dot product is added at once.
//
// Every element is a sum over the steps, in order, from zero: of fused multiply-adds in f32, of dot
// products of pairs in bf16. Only the sum is added to C. So its bits depend neither on the vector
// length nor on the rest of the strip.
#pragma once

#include "cpu_kernels/operand.h"

namespace hearth {

/// Memory to prefetch while a strip is multiplied: line i is at byte at + i / 16 * outer + i % 16 *
/// inner. It is never read, so any address is valid. Null: nothing.
struct Lines {
  const std::byte* at = nullptr;
  int64_t inner = 0, outer = 0;
};

/// Prefetched in turn, a line at every step.
struct Ahead {
  Lines even, odd;
};

/// Lanes between rows of a strip of A that lies by rows, and most steps of such a strip. An odd number
/// of cache lines, so that the rows of a strip share no cache set.
constexpr int64_t kLeftRow = 464;
constexpr int64_t kMostSteps = kLeftRow - 16;

struct MicroKernel {
  const char* name;
  int rows;         // most rows of a strip of A
  int lanes;        // columns of a full strip of B
  int left_stride;  // lanes between steps of a strip of A that lies by steps, at least `rows`
  int depth;        // elements of k in a step: 1 of f32, 2 of bf16
  // Of B that is packed at a time, so that two such panels leave the second cache some room: columns
  // at most, and steps, to which those of a tail are added.
  int panel_columns, panel_steps;

  int64_t steps(int64_t k) const { return (k + depth - 1) / depth; }
  /// Lanes of a strip of A by steps. It has one extra step, so that strips do not share cache sets.
  int64_t left_strip(int64_t all_steps) const { return (all_steps + 1) * left_stride; }

  /// Packs A into strips of `rows` rows, `strip` lanes apart: by steps, [steps(a.cols()),
  /// left_stride], if A is transposed, else by rows, [rows, kLeftRow]. `round` rounds to bf16, which
  /// kernels of bf16 always do. Up to 15 lanes past the last row of a step are undefined, and so are
  /// those past the last step of a row.
  void (*pack_left)(const Operand& a, bool round, int64_t rows, int64_t strip, float* target);
  /// Packs B into strips of `lanes` columns, `strip` lanes apart. A strip is [steps(b.rows()),
  /// lanes].
  void (*pack_right)(const Operand& b, bool round, int64_t strip, float* target);
  /// c[i, j] (+)= sum over p < steps of a[i, p] * b[p * ldb + j] for i < m, j < n; 1 <= m <= rows,
  /// 1 <= n <= lanes. a[i, p] is at i * kLeftRow + p if A lies `by_rows`, else at p * left_stride + i.
  void (*run)(int64_t m, int64_t n, int64_t steps, const float* a, bool by_rows, const float* b,
              int64_t ldb, float* c, int64_t ldc, bool add, const Ahead& ahead);
};

extern const MicroKernel kAvx512Kernel;
extern const MicroKernel kAvx512Bf16Kernel;
extern const MicroKernel kAvx2Kernel;

/// The widest kernel of f32 that this machine supports and HEARTH_ISA allows.
const MicroKernel& micro_kernel();

}  // namespace hearth
