#include "cpu_kernels/product.h"

#include <algorithm>

#include "cpu_kernels/onednn_shim.h"

namespace hearth {
namespace {

constexpr int64_t kMostLanes = 32;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// One block of k, B packed or in place: every strip of A, which stays in the first cache, against
// every strip of B, which streams from the second. Strips of B are `strip_step` apart. A strip of A
// is packed when its turn comes, a transposed A before: its columns come eight at a time.
void multiply_block(const Operand& a, bool round, const float* b, int64_t ldb, int64_t strip_step,
                    int64_t n, float* c, int64_t ldc, bool add, float* left) {
  const MicroKernel& kernel = micro_kernel();
  const int64_t m = a.rows(), k = a.cols();
  if (a.transposed) pack_left(a, round, left);
  for (int64_t i = 0; i < m; i += kernel.rows) {
    const int64_t rows = std::min<int64_t>(kernel.rows, m - i);
    if (!a.transposed) pack_left(a.block(i, rows, 0, k), round, left);
    const float* strip = a.transposed ? left + i * kStripStride : left;
    for (int64_t j = 0; j < n; j += kernel.lanes) {
      kernel.run(rows, std::min<int64_t>(kernel.lanes, n - j), k, strip,
                 b + j / kernel.lanes * strip_step, ldb, c + i * ldc + j, ldc, add);
    }
  }
}

void clear(float* c, int64_t ldc, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, 0.0f);
}

}  // namespace

Blocks::Blocks(int64_t n) : size(n) {
  if (n == 0) return;
  const int64_t blocks = (n + kLargest - 1) / kLargest;
  step = round_up((n + blocks - 1) / blocks, 16);
}

void multiply_in_place(const Operand& a, bool round_left, const float* b, int64_t ldb, int64_t n,
                       float* c, int64_t ldc, bool accumulate, float* left) {
  const int64_t m = a.rows(), k = a.cols();
  if (k == 0 && !accumulate) clear(c, ldc, m, n);
  for (int64_t i = 0; i < m; i += Blocks::kLargest) {
    const int64_t rows = std::min(Blocks::kLargest, m - i);
    for (int64_t p = 0; p < k; p += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, k - p);
      multiply_block(a.block(i, rows, p, depth), round_left, b + p * ldb, ldb, micro_kernel().lanes,
                     n, c + i * ldc, ldc, accumulate || p > 0, left);
    }
  }
}

void multiply(Scratch& scratch, bool bf16, const Operand& a, const Operand& b, float* c,
              int64_t ldc, bool accumulate) {
  HEARTH_CHECK(a.cols() == b.rows() && a.rows() <= Blocks::kLargest && b.cols() <= Blocks::kLargest,
               "product: shapes");
  const int64_t m = a.rows(), k = a.cols(), n = b.cols();
  if (k == 0) {
    if (!accumulate) clear(c, ldc, m, n);
    return;
  }
  if (bf16 && onednn_has_fast_bf16()) {
    onednn_multiply_bf16(scratch, a, b, c, ldc, accumulate);
    return;
  }
  const MicroKernel& kernel = micro_kernel();
  // f32 operands stand as oneDNN wants them. Few rows gain nothing there, and other stored types
  // would have to be brought into f32 first: those go through the packed kernel.
  const bool plain = !bf16 && a.memory.dtype == DType::f32 && b.memory.dtype == DType::f32;
  if (plain && m > 2 * kernel.rows) {
    onednn_multiply_f32(scratch, a, b, c, ldc, accumulate);
    return;
  }
  Scratch::Frame frame(scratch);
  float* left = scratch.take<float>(kLeftFloats);
  // Where few strips of A use it, B is read where it stands.
  const bool in_place =
      !b.transposed && b.memory.dtype == DType::f32 && !bf16 && m <= 2 * kernel.rows;
  if (in_place) {
    multiply_in_place(a, false, b.memory.as<float>(), b.memory.stride, n, c, ldc, accumulate, left);
    return;
  }
  // The sum over blocks of k is formed beside C, whose rows may share cache sets.
  const bool direct = k <= kDepthBlock;
  float* right = scratch.take<float>(kDepthBlock * round_up(n, kMostLanes));
  float* sum = direct ? c : scratch.take<float>(m * n);
  const int64_t ld_sum = direct ? ldc : n;
  for (int64_t p = 0; p < k; p += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, k - p);
    pack_right(b.block(p, depth, 0, n), bf16, kernel.lanes, right);
    multiply_block(a.block(0, m, p, depth), bf16, right, kernel.lanes, depth * kernel.lanes, n, sum,
                   ld_sum, (direct && accumulate) || p > 0, left);
  }
  if (direct) return;
  for (int64_t i = 0; i < m; ++i) {
    const float* from = sum + i * n;
    float* to = c + i * ldc;
    for (int64_t j = 0; j < n; ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
  }
}

size_t multiply_scratch() {
  constexpr int64_t side = Blocks::kLargest;
  const int64_t packed = kLeftFloats + kDepthBlock * side + side * side;
  const size_t own = std::max(sizeof(float) * static_cast<size_t>(packed) + 3 * kArenaAlignment,
                              onednn_multiply_f32_scratch());
  return onednn_has_fast_bf16() ? std::max(own, onednn_multiply_scratch()) : own;
}

}  // namespace hearth
