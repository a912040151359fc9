// Cross-entropy beside its products: which rows are trained, the loss of a row of logits and its
// gradient in place of it, and the sum over rows.
#include "gpu_kernels/kernels/block_sum.cuh"
#include "gpu_kernels/kernels/numbers.cuh"
#include "gpu_kernels/launch.h"
#include "gpu_kernels/kernels/loss_rows.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int32_t kNotTrained = -100;
constexpr int kCompactThreads = 1024;
constexpr int kLossThreads = 512;  // at most, a row of logits
constexpr int kRowThreads = 128;   // at most, a row of activations
constexpr int kSumThreads = 256;
constexpr float kLowestLogit = -1e30f;

/// trained = the rows with a label, in order, then -1. One block.
__global__ void __launch_bounds__(kCompactThreads)
    compact_labels_kernel(const int32_t* labels, int rows, int32_t* trained) {
  __shared__ int of_warp[kCompactThreads / 32];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  int done = 0;  // trained rows before this round's, the same in every thread
  for (int begin = 0; begin < rows; begin += kCompactThreads) {
    const int row = begin + thread;
    const bool has_label = row < rows && labels[row] != kNotTrained;
    const unsigned votes = __ballot_sync(0xffffffffu, has_label);
    if (lane == 0) of_warp[warp] = __popc(votes);
    __syncthreads();
    int before = done, all = 0;
    for (int w = 0; w < kCompactThreads / 32; ++w) {
      if (w < warp) before += of_warp[w];
      all += of_warp[w];
    }
    if (has_label) trained[before + __popc(votes & ((1u << lane) - 1))] = row;
    done += all;
    __syncthreads();
  }
  for (int i = done + thread; i < rows; i += kCompactThreads) trained[i] = -1;
}

/// Row r of `to` = row trained[r] of `from`, zeros where there is none. A block a row.
__global__ void __launch_bounds__(kRowThreads)
    gather_trained_kernel(const int32_t* trained, int width, FloatRows from, FloatRows to) {
  const int64_t row = blockIdx.x;
  const int64_t source = trained[row];
  for (int c = static_cast<int>(threadIdx.x); c < width; c += static_cast<int>(blockDim.x)) {
    to.data[row * to.stride + c] = source < 0 ? 0.0f : from.data[source * from.stride + c];
  }
}

/// Row trained[r] of `to` = row r of `from`. A block a row.
__global__ void __launch_bounds__(kRowThreads)
    scatter_trained_kernel(const int32_t* trained, int width, FloatRows from, FloatRows to) {
  const int64_t row = blockIdx.x;
  const int64_t target = trained[row];
  if (target < 0) return;
  for (int c = static_cast<int>(threadIdx.x); c < width; c += static_cast<int>(blockDim.x)) {
    to.data[target * to.stride + c] = from.data[row * from.stride + c];
  }
}

/// Rows without a label become zero. A block a row.
__global__ void __launch_bounds__(kRowThreads)
    clear_untrained_kernel(const int32_t* labels, int width, FloatRows to) {
  const int64_t row = blockIdx.x;
  if (labels[row] != kNotTrained) return;
  for (int c = static_cast<int>(threadIdx.x); c < width; c += static_cast<int>(blockDim.x)) {
    to.data[row * to.stride + c] = 0.0f;
  }
}

/// The largest x of a block, in every thread.
__device__ inline float largest_of_block(float x, float* of_warp) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  const int thread = static_cast<int>(threadIdx.x), warps = static_cast<int>(blockDim.x) / 32;
  if (thread % 32 == 0) of_warp[thread / 32] = x;
  __syncthreads();
  float largest = of_warp[0];
  for (int w = 1; w < warps; ++w) largest = fmaxf(largest, of_warp[w]);
  __syncthreads();
  return largest;
}

/// Adds exp(x - largest) to a sum that is relative to the largest so far.
struct OnlineSum {
  float largest = kLowestLogit, sum = 0.0f;
  __device__ void add(float4 x) {
    const float top = fmaxf(fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w)), largest);
    sum = sum * expf(largest - top) + (expf(x.x - top) + expf(x.y - top)) +
          (expf(x.z - top) + expf(x.w - top));
    largest = top;
  }
  __device__ void add(float x) {
    const float top = fmaxf(x, largest);
    sum = sum * expf(largest - top) + expf(x - top);
    largest = top;
  }
};

/// A block a row, of whole warps, at most kLossThreads: reads the row twice and writes it once.
__global__ void __launch_bounds__(kLossThreads)
    loss_rows_kernel(const __grid_constant__ LossChunk chunk) {
  __shared__ double sums[kLossThreads / 32];
  __shared__ float tops[kLossThreads / 32];
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x), vocabulary = chunk.vocabulary;
  float* z = chunk.logits + row * chunk.logits_stride;
  auto* fours = reinterpret_cast<float4*>(z);
  const int whole = vocabulary / 4, rest = whole * 4 + thread;
  const int trained = chunk.trained[row];
  if (trained < 0) {
    if (thread == 0) chunk.row_loss[row] = 0;
    for (int c = thread; chunk.gradients && c < vocabulary; c += threads) z[c] = 0.0f;
    return;
  }

  OnlineSum own;
  for (int i = thread; i < whole; i += threads) own.add(load_wide<float4>(fours + i));
  if (rest < vocabulary) own.add(z[rest]);
  const float top = largest_of_block(own.largest, tops);
  const double sum = sum_of_block(static_cast<double>(own.sum * expf(own.largest - top)), sums);
  const int label = chunk.labels[trained];
  // No token has such a number: nothing is read, and the loss says so.
  const bool known = label >= 0 && label < vocabulary;
  const double logit =
      known ? static_cast<double>(z[label]) - static_cast<double>(top) : static_cast<double>(NAN);
  if (thread == 0) chunk.row_loss[row] = log(sum) - logit;
  if (!chunk.gradients) return;

  __syncthreads();  // all have read the label's logit
  const auto factor = static_cast<float>(chunk.scale / sum);
  for (int i = thread; i < whole; i += threads) {
    auto x = load_wide<float4>(fours + i);
    x.x = factor * expf(x.x - top);
    x.y = factor * expf(x.y - top);
    x.z = factor * expf(x.z - top);
    x.w = factor * expf(x.w - top);
    store_wide(fours + i, x);
  }
  if (rest < vocabulary) z[rest] = factor * expf(z[rest] - top);
  __syncthreads();
  if (thread == 0 && known) {
    z[label] = static_cast<float>(chunk.scale * (exp(logit) / sum - 1));
  }
}

/// One block.
__global__ void __launch_bounds__(kSumThreads) sum_loss_kernel(const LossSum a) {
  __shared__ double sums[kSumThreads / 32];
  double own = 0;
  for (int r = static_cast<int>(threadIdx.x); r < a.rows; r += kSumThreads) own += a.row_loss[r];
  double sum = sum_of_block(own, sums);
  if (threadIdx.x != 0) return;
  if (a.beyond != nullptr && *a.beyond >= 0) sum = NAN;
  *a.loss = sum;
  if (sum - sum == 0) return;  // neither infinite nor NaN
  if (a.dx != nullptr) *a.dx = NAN;
  if (a.weight_gradient != nullptr) *a.weight_gradient = NAN;
}

/// Whole warps, few for short rows.
int row_threads(int width) { return width >= kRowThreads ? kRowThreads : 32; }
int loss_threads(int vocabulary) {
  return vocabulary >= 4 * kLossThreads ? kLossThreads : vocabulary >= 512 ? 128 : 32;
}

}  // namespace

void compact_labels_on(void* stream, const int32_t* labels, int rows, int32_t* trained) {
  if (rows == 0) return;
  launch(compact_labels_kernel, 1, kCompactThreads, 0, stream, labels, rows, trained);
}

void gather_trained_on(void* stream, const int32_t* trained, int rows, int width, FloatRows from,
                       FloatRows to) {
  if (rows == 0) return;
  launch(gather_trained_kernel, rows, row_threads(width), 0, stream, trained, width, from, to);
}

void scatter_trained_on(void* stream, const int32_t* trained, int rows, int width, FloatRows from,
                        FloatRows to) {
  if (rows == 0) return;
  launch(scatter_trained_kernel, rows, row_threads(width), 0, stream, trained, width, from, to);
}

void clear_untrained_on(void* stream, const int32_t* labels, int rows, int width, FloatRows to) {
  if (rows == 0) return;
  launch(clear_untrained_kernel, rows, row_threads(width), 0, stream, labels, width, to);
}

void loss_rows_on(void* stream, const LossChunk& chunk) {
  if (chunk.rows == 0) return;
  launch(loss_rows_kernel, chunk.rows, loss_threads(chunk.vocabulary), 0, stream, chunk);
}

void sum_loss_on(void* stream, const LossSum& a) {
  launch(sum_loss_kernel, 1, kSumThreads, 0, stream, a);
}

}  // namespace hearth::HEARTH_GPU
