// Sums over the threads of a block.
#pragma once

namespace hearth::HEARTH_GPU {

/// The sum of x over the threads of a block, in every thread, in an order fixed by their number.
/// Blocks are of whole warps; `of_warp` is shared memory, an element a warp.
__device__ inline double sum_of_block(double x, double* of_warp) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  const int thread = static_cast<int>(threadIdx.x), warps = static_cast<int>(blockDim.x) / 32;
  if (thread % 32 == 0) of_warp[thread / 32] = x;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < warps; ++w) sum += of_warp[w];
  __syncthreads();
  return sum;
}

}  // namespace hearth::HEARTH_GPU
