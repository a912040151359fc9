// The inner loop of the packed f32 products: one strip of A against one strip of B.
//
// Every element is sum over k, in order, of fused multiply-adds from zero, and only then added to
// what C holds. So its bits depend neither on the vector length nor on what else is in the strip.
#pragma once

#include <cstdint>

namespace hearth {

/// k is cut into blocks of this many; also the row stride of a strip of A is fixed by it.
constexpr int64_t kDepthBlock = 256;
/// Floats from one row of a packed strip of A to the next: not a power of two, so that rows do not
/// share cache sets.
constexpr int64_t kStripStride = kDepthBlock + 16;

struct MicroKernel {
  const char* name;
  int rows;   // most rows of A in a strip
  int lanes;  // columns of B in a full strip
  /// c[i, j] (+)= sum over p < k of a[i * kStripStride + p] * b[p * ldb + j] for i < m, j < n;
  /// 1 <= m <= rows, 1 <= n <= lanes, k <= kDepthBlock.
  void (*run)(int64_t m, int64_t n, int64_t k, const float* a, const float* b, int64_t ldb,
              float* c, int64_t ldc, bool add);
};

extern const MicroKernel kAvx512Kernel;
extern const MicroKernel kAvx2Kernel;

/// The widest one that this machine has and ONEDNN_MAX_CPU_ISA allows.
const MicroKernel& micro_kernel();

}  // namespace hearth
