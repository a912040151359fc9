// Rows that are read by a warp, where they are short, or by a block.
#pragma once

#include "gpu_kernels/kernels/block_sum.cuh"
#include "gpu_kernels/kernels/quads.cuh"

namespace hearth::HEARTH_GPU {

constexpr int kRowBlock = 256;                // threads
constexpr int kRowsOfWarps = kRowBlock / 32;  // rows of a block, a warp each
constexpr int64_t kLongestRowOfWarp = 1024;   // elements

/// Who reads the row: `kThreads` of them, 32 or kRowBlock.
template <int kThreads>
struct RowThreads {
  static_assert(kThreads == 32 || kThreads == kRowBlock);
  int64_t row;
  int thread;  // of the row's
  __device__ RowThreads() {
    const int t = static_cast<int>(threadIdx.x);
    row = kThreads == 32 ? int64_t{blockIdx.x} * kRowsOfWarps + t / 32 : int64_t{blockIdx.x};
    thread = t % kThreads;
  }
  /// f(col, n) for this thread's quads.
  template <class F>
  __device__ void for_quads(int64_t cols, const F& f) const {
    for (int64_t c = int64_t{4} * thread; c < cols; c += 4 * kThreads) {
      f(c, cols - c < 4 ? static_cast<int>(cols - c) : 4);
    }
  }
  /// The sum over the row's threads, in all of them.
  __device__ double sum(double x) const {
    if constexpr (kThreads == 32) {
      for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
      return x;
    } else {
      __shared__ double of_warp[kRowBlock / 32];
      return sum_of_block(x, of_warp);
    }
  }
};

/// Launches kernel(32) or kernel(kRowBlock), each for all rows.
template <class Short, class Long, class Arguments>
void launch_rows(Short short_rows, Long long_rows, void* stream, const Arguments& a) {
  if (a.rows == 0) return;
  if (a.cols <= kLongestRowOfWarp) {
    launch(short_rows, parts_over(a.rows, kRowsOfWarps), kRowBlock, 0, stream, a);
  } else {
    launch(long_rows, a.rows, kRowBlock, 0, stream, a);
  }
}

}  // namespace hearth::HEARTH_GPU
