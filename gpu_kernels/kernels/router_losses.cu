// The router's losses of all layers, from a few sums a layer: one block, sums in f64 in a fixed order.
#include "gpu_kernels/kernels/block_sum.cuh"
#include "gpu_kernels/launch.h"
#include "gpu_kernels/kernels/router_losses_rows.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int kThreads = 256;

/// A thread takes every 256th expert, over the layers in order.
__global__ void __launch_bounds__(kThreads)
    router_losses_kernel(const __grid_constant__ RouterLossArguments a) {
  __shared__ double of_warp[kThreads / 32];
  // Counts and sums of probabilities are T times shares and means, pooled ones M T times.
  const double layers = a.layers, parts = a.pooled ? layers * a.tokens : a.tokens;
  const double scale = a.layers > 0 ? a.experts / layers : 0;
  const double slope = a.aux_weight * scale / (parts * a.tokens);
  double aux = 0;
  for (int e = static_cast<int>(threadIdx.x); e < a.experts; e += kThreads) {
    double count = 0, probability = 0;
    for (int l = 0; l < a.layers && a.pooled; ++l) {
      count += a.sums[l][e];
      probability += a.sums[a.layers + l][e];
    }
    for (int l = 0; l < a.layers; ++l) {
      if (!a.pooled) {
        count = a.sums[l][e];
        probability = a.sums[a.layers + l][e];
      }
      aux += count * probability;
      if (a.dprobs != nullptr) {
        a.dprobs[l * a.dprobs_stride + e] = static_cast<float>(slope * count);
      }
    }
  }
  const double sum = sum_of_block(aux, of_warp);
  double squares = 0;
  for (int l = static_cast<int>(threadIdx.x); l < a.layers && a.has_squares; l += kThreads) {
    squares += *a.sums[2 * a.layers + l];
  }
  const double z = sum_of_block(squares, of_warp);
  if (threadIdx.x != 0) return;
  *a.aux = a.layers > 0 ? scale * sum / (parts * parts) : 0;
  *a.z = a.layers > 0 ? z / (layers * a.tokens) : 0;
}

}  // namespace

void router_losses_on(void* stream, const RouterLossArguments& arguments) {
  launch(router_losses_kernel, 1, kThreads, 0, stream, arguments);
}

}  // namespace hearth::HEARTH_GPU
