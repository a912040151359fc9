#include "gpu_kernels/kernels/block_sum.cuh"
#include "gpu_kernels/kernels/quads.cuh"
#include "gpu_kernels/kernels/runs.cuh"
#include "gpu_kernels/kernels/square_sums.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int kThreads = 256;

/// A block of threads a block of elements, in f64: squares of f32 may be too large or too small for
/// it.
__global__ void __launch_bounds__(kThreads)
    square_blocks_kernel(const __grid_constant__ SquaresArguments a) {
  __shared__ double of_warp[kThreads / 32];
  const int64_t block = blockIdx.x;
  const SquaresView view = run_of_block(a.views, a.count, block);
  const int64_t begin = (block - view.first_block) * kSquareBlock;
  const int64_t rest = view.size - begin, size = rest < kSquareBlock ? rest : kSquareBlock;
  const float* const from = view.data + begin;
  const bool together = reinterpret_cast<uintptr_t>(from) % 16 == 0;
  double sum = 0;
#pragma unroll 4
  for (int64_t i = int64_t{4} * threadIdx.x; i < size; i += 4 * kThreads) {
    float x[4];
    read4(from + i, size - i < 4 ? static_cast<int>(size - i) : 4, together, x);
    for (int j = 0; j < 4; ++j) {
      sum = fma(static_cast<double>(x[j]), static_cast<double>(x[j]), sum);
    }
  }
  sum = sum_of_block(sum, of_warp);
  if (threadIdx.x == 0) a.partial[block] = sum;
}

/// A warp a view.
__global__ void __launch_bounds__(kThreads)
    square_sums_kernel(const __grid_constant__ SquaresArguments a) {
  const int64_t view = int64_t{blockIdx.x} * (kThreads / 32) + static_cast<int>(threadIdx.x) / 32;
  if (view >= a.count) return;
  const int64_t end = view + 1 < a.count ? a.views[view + 1].first_block : a.blocks;
  double sum = 0;
  for (int64_t i = a.views[view].first_block + threadIdx.x % 32; i < end; i += 32) {
    sum += a.partial[i];
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) a.out[view] = sum;
}

}  // namespace

void sum_squares_on(void* stream, const SquaresArguments& a) {
  if (a.blocks > 0) launch(square_blocks_kernel, a.blocks, kThreads, 0, stream, a);
  if (a.count > 0) {
    launch(square_sums_kernel, parts_over(a.count, kThreads / 32), kThreads, 0, stream, a);
  }
}

}  // namespace hearth::HEARTH_GPU
