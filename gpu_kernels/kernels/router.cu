// The router: a warp a token, sums in f64.
#include "gpu_kernels/kernels/block_sum.cuh"
#include "gpu_kernels/launch.h"
#include "gpu_kernels/kernels/router_rows.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kTokens = 4;  // of a block, a warp each
constexpr int kThreads = 32 * kTokens;

__device__ inline double sum_of_warp(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kAll, x, step);
  return x;
}
__device__ inline float largest_of_warp(float x) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, step));
  return x;
}

struct TokenOfWarp {
  int64_t token;
  int lane;
  __device__ TokenOfWarp()
      : token(int64_t{blockIdx.x} * kTokens + static_cast<int>(threadIdx.x) / 32),
        lane(static_cast<int>(threadIdx.x) % 32) {}
};

__device__ inline float largest_of_row(const float* row, int n, int lane) {
  float largest = -INFINITY;
  for (int e = lane; e < n; e += 32) largest = fmaxf(largest, row[e]);
  return largest_of_warp(largest);
}

/// An expert and its probability; -1 has been taken.
struct Best {
  float p = -1;
  int expert = 0x7fffffff;
  __device__ void meet(float other_p, int other) {
    if (other_p > p || (other_p == p && other < expert)) {
      p = other_p;
      expert = other;
    }
  }
};

/// The largest that is left, the lowest index on ties. Where nothing compares (NaN), the first that
/// is left, so that a choice is always an expert.
__device__ inline int best_of_row(const float* left, int n, int lane) {
  Best best;
  for (int e = lane; e < n; e += 32) best.meet(left[e], e);
  for (int step = 16; step > 0; step /= 2) {
    const float p = __shfl_xor_sync(kAll, best.p, step);
    best.meet(p, __shfl_xor_sync(kAll, best.expert, step));
  }
  if (best.p >= 0) return best.expert;
  int first = 0x7fffffff;
  for (int e = lane; e < n && first == 0x7fffffff; e += 32) {
    if (!(left[e] < 0)) first = e;
  }
  for (int step = 16; step > 0; step /= 2) first = min(first, __shfl_xor_sync(kAll, first, step));
  return first;
}

/// The divisor of a token's combine weights.
__device__ inline double weight_divisor(const float* probs, const int32_t* chosen, int k,
                                        bool normalize) {
  double sum = 0;
  for (int j = 0; j < k; ++j) sum += static_cast<double>(probs[chosen[j]]);
  return normalize ? sum : 1.0;
}

__global__ void __launch_bounds__(kThreads)
    router_kernel(const __grid_constant__ RouterArguments a) {
  const TokenOfWarp place;
  if (place.token >= a.tokens) return;
  const int lane = place.lane;
  float* const left = shared_memory<float>() + static_cast<int>(threadIdx.x) / 32 * a.experts;
  const float* const z = a.logits.data + place.token * a.logits.stride;
  float* const p = a.probs_out.data + place.token * a.probs_out.stride;
  int32_t* const chosen = a.choice_out.data + place.token * a.choice_out.stride;
  float* const weight = a.weight.data + place.token * a.weight.stride;

  const float shift = largest_of_row(z, a.experts, lane);
  double sum = 0;
  for (int e = lane; e < a.experts; e += 32) {
    left[e] = expf(z[e] - shift);
    sum += static_cast<double>(left[e]);
  }
  const auto divisor = static_cast<float>(sum_of_warp(sum));
  for (int e = lane; e < a.experts; e += 32) {
    left[e] = left[e] / divisor;
    p[e] = left[e];
  }
  double chosen_sum = 0;
  for (int j = 0; j < a.choices; ++j) {
    const int best = best_of_row(left, a.experts, lane);
    __syncwarp();  // all have read
    if (best % 32 == lane) {
      chosen[j] = best;
      weight[j] = left[best];
      left[best] = -1;
    }
    __syncwarp();
    chosen_sum += static_cast<double>(weight[j]);
  }
  __syncwarp();
  if (!a.normalize) return;
  for (int j = lane; j < a.choices; j += 32) {
    weight[j] = static_cast<float>(static_cast<double>(weight[j]) / chosen_sum);
  }
}

// First the gradient of probs: of w_j = p_j / s it is (dw_j - sum_i dw_i w_i) / s with s the sum of
// the chosen, of w_j = p_j it is dw_j. Then through the softmax: p * (dp - <p, dp>).
__global__ void __launch_bounds__(kThreads)
    router_gradient_kernel(const __grid_constant__ RouterArguments a) {
  const TokenOfWarp place;
  if (place.token >= a.tokens) return;
  const float* const p = a.probs.data + place.token * a.probs.stride;
  const float* const dw = a.dweight.data + place.token * a.dweight.stride;
  const int32_t* const chosen = a.choice.data + place.token * a.choice.stride;
  float* const dlogits = a.dlogits.data + place.token * a.dlogits.stride;
  const double divisor = weight_divisor(p, chosen, a.choices, a.normalize);
  double mean = 0;
  for (int j = 0; j < a.choices && a.normalize; ++j) {
    mean += static_cast<double>(dw[j]) * static_cast<double>(p[chosen[j]]) / divisor;
  }
  const auto gradient = [&](int e) {
    double dp = 0;
    if (a.dprobs != nullptr) {
      dp = a.dprobs_f64 ? static_cast<const double*>(a.dprobs)[e]
                        : static_cast<double>(static_cast<const float*>(a.dprobs)[e]);
    }
    for (int j = 0; j < a.choices; ++j) {
      if (chosen[j] == e) dp += (static_cast<double>(dw[j]) - mean) / divisor;
    }
    return dp;
  };
  double inner = 0;
  for (int e = place.lane; e < a.experts; e += 32) inner += static_cast<double>(p[e]) * gradient(e);
  inner = sum_of_warp(inner);
  for (int e = place.lane; e < a.experts; e += 32) {
    dlogits[e] = static_cast<float>(static_cast<double>(p[e]) * (gradient(e) - inner));
  }
}

/// A block a part of the tokens; counts are integers, so their order is no matter.
__global__ void __launch_bounds__(kThreads)
    router_parts_kernel(const __grid_constant__ RouterSums a) {
  int* const count = shared_memory<int>();
  const int64_t part = blockIdx.x, per_part = parts_over(a.tokens, kSumParts);
  const int64_t begin = part * per_part;
  const int64_t end = begin + per_part < a.tokens ? begin + per_part : a.tokens;
  for (int e = static_cast<int>(threadIdx.x); e < a.experts; e += kThreads) count[e] = 0;
  __syncthreads();
  for (int64_t i = begin * a.choices + threadIdx.x; i < end * a.choices; i += kThreads) {
    const int e = a.choice.data[i / a.choices * a.choice.stride + i % a.choices];
    if (e >= 0 && e < a.experts) atomicAdd(&count[e], 1);
  }
  __syncthreads();
  for (int e = static_cast<int>(threadIdx.x); e < a.experts; e += kThreads) {
    double sum = 0;
#pragma unroll 16
    for (int64_t t = begin; t < end; ++t) {
      sum += static_cast<double>(a.probs.data[t * a.probs.stride + e]);
    }
    a.part_counts[part * a.experts + e] = count[e];
    a.part_sums[part * a.experts + e] = sum;
  }
}

__global__ void __launch_bounds__(kThreads)
    router_sums_kernel(const __grid_constant__ RouterSums a) {
  const int e = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (e >= a.experts) return;
  double count = 0, sum = 0;
#pragma unroll 8
  for (int64_t i = 0; i < kSumParts; ++i) {
    count += a.part_counts[i * a.experts + e];
    sum += a.part_sums[i * a.experts + e];
  }
  a.counts[e] = count;
  a.prob_sums[e] = sum;
}

__global__ void __launch_bounds__(kThreads)
    router_z_kernel(const __grid_constant__ RouterArguments a) {
  const TokenOfWarp place;
  if (place.token >= a.tokens) return;
  const float* const z = a.logits.data + place.token * a.logits.stride;
  const float shift = largest_of_row(z, a.experts, place.lane);
  double sum = 0;
  for (int e = place.lane; e < a.experts; e += 32) sum += static_cast<double>(expf(z[e] - shift));
  sum = sum_of_warp(sum);
  if (place.lane == 0) {
    a.log_sum_out.data[place.token * a.log_sum_out.stride] =
        static_cast<float>(static_cast<double>(shift) + log(sum));
  }
}

constexpr int kSquareThreads = 1024;

/// One block; a thread takes every 1024th token.
__global__ void __launch_bounds__(kSquareThreads)
    router_squares_kernel(Matrix<const float> log_sum, int64_t tokens, double* squares) {
  __shared__ double of_warp[kSquareThreads / 32];
  double sum = 0;
  for (int64_t t = threadIdx.x; t < tokens; t += kSquareThreads) {
    const double l = static_cast<double>(log_sum.data[t * log_sum.stride]);
    sum += l * l;
  }
  sum = sum_of_block(sum, of_warp);
  if (threadIdx.x == 0) *squares = sum;
}

__global__ void __launch_bounds__(kThreads)
    router_z_gradient_kernel(const __grid_constant__ RouterArguments a) {
  const TokenOfWarp place;
  if (place.token >= a.tokens) return;
  const double l = static_cast<double>(a.log_sum.data[place.token * a.log_sum.stride]);
  const auto factor = static_cast<float>(2 * a.scale * l);
  const float* const p = a.probs.data + place.token * a.probs.stride;
  float* const d = a.dlogits.data + place.token * a.dlogits.stride;
  for (int e = place.lane; e < a.experts; e += 32) d[e] += factor * p[e];
}

}  // namespace

void router_on(void* stream, const RouterArguments& a) {
  if (a.tokens == 0) return;
  launch(router_kernel, parts_over(a.tokens, kTokens), kThreads,
         sizeof(float) * kTokens * static_cast<size_t>(a.experts), stream, a);
}

void router_gradient_on(void* stream, const RouterArguments& a) {
  if (a.tokens == 0) return;
  launch(router_gradient_kernel, parts_over(a.tokens, kTokens), kThreads, 0, stream, a);
}

void router_sums_on(void* stream, const RouterSums& a) {
  launch(router_parts_kernel, kSumParts, kThreads, sizeof(int) * static_cast<size_t>(a.experts),
         stream, a);
  launch(router_sums_kernel, parts_over(a.experts, kThreads), kThreads, 0, stream, a);
}

void router_z_on(void* stream, const RouterArguments& a, double* squares) {
  if (a.tokens > 0) launch(router_z_kernel, parts_over(a.tokens, kTokens), kThreads, 0, stream, a);
  const Matrix<const float> log_sum{a.log_sum_out.data, a.log_sum_out.stride};
  launch(router_squares_kernel, 1, kSquareThreads, 0, stream, log_sum, a.tokens, squares);
}

void router_z_gradient_on(void* stream, const RouterArguments& a) {
  if (a.tokens == 0) return;
  launch(router_z_gradient_kernel, parts_over(a.tokens, kTokens), kThreads, 0, stream, a);
}

}  // namespace hearth::HEARTH_GPU
