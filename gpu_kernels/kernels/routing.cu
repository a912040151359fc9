// Sorting choices by expert, moving rows to their expert and back.
#include "gpu_kernels/kernels/rows.cuh"
#include "gpu_kernels/kernels/router_rows.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr unsigned kAll = 0xffffffffu;

/// The position of the expert that the i-th choice is; -1 if it is no expert.
__device__ inline int32_t position_at(const RouteArguments& a, int64_t i) {
  const int32_t e = a.choice.data[i / a.choices * a.choice.stride + i % a.choices];
  if (e < 0 || e >= a.experts) return -1;
  return a.position == nullptr ? e : a.position[e];
}

/// A warp a chunk, which is a block: how often it chooses each expert.
__global__ void __launch_bounds__(32)
    count_choices_kernel(const __grid_constant__ RouteArguments a) {
  int* const count = shared_memory<int>();
  const int lane = static_cast<int>(threadIdx.x);
  for (int e = lane; e < a.experts; e += 32) count[e] = 0;
  __syncwarp();
  const int64_t begin = blockIdx.x * a.chunk;
  const int64_t end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
  for (int64_t i = begin + lane; i < end; i += 32) {
    const int e = position_at(a, i);
    if (e >= 0) atomicAdd(&count[e], 1);
  }
  __syncwarp();
  for (int e = lane; e < a.experts; e += 32)
    a.places[int64_t{e} * a.chunks + blockIdx.x] = count[e];
}

__device__ inline int sum_up_to(int x, int lane) {
  for (int step = 1; step < 32; step *= 2) {
    const int below = __shfl_up_sync(kAll, x, static_cast<unsigned>(step));
    if (lane >= step) x += below;
  }
  return x;
}

/// A warp an expert, which is a block: counts of chunks become the number of choices before each;
/// offsets[e + 1] is the number of all.
__global__ void __launch_bounds__(32) scan_chunks_kernel(const __grid_constant__ RouteArguments a) {
  const int lane = static_cast<int>(threadIdx.x);
  int32_t* const places = a.places + int64_t{blockIdx.x} * a.chunks;
  int before = 0;
  for (int first = 0; first < a.chunks; first += 32) {
    const int i = first + lane, count = i < a.chunks ? places[i] : 0;
    const int up_to = sum_up_to(count, lane);
    if (i < a.chunks) places[i] = before + up_to - count;
    before += __shfl_sync(kAll, up_to, 31);
  }
  if (lane == 0) a.offsets[blockIdx.x + 1] = before;
}

/// One warp: numbers of rows become offsets.
__global__ void __launch_bounds__(32) scan_experts_kernel(int32_t* offsets, int experts) {
  const int lane = static_cast<int>(threadIdx.x);
  int before = 0;
  for (int first = 0; first < experts; first += 32) {
    const int e = first + lane;
    const int up_to = sum_up_to(e < experts ? offsets[e + 1] : 0, lane);
    if (e < experts) offsets[e + 1] = before + up_to;
    before += __shfl_sync(kAll, up_to, 31);
  }
  if (lane == 0) offsets[0] = 0;
}

/// A warp a chunk, which is a block: lanes with the same expert take rows in the order of lanes.
__global__ void __launch_bounds__(32)
    place_choices_kernel(const __grid_constant__ RouteArguments a) {
  int* const next = shared_memory<int>();
  const int lane = static_cast<int>(threadIdx.x);
  for (int e = lane; e < a.experts; e += 32) {
    next[e] = a.offsets[e] + a.places[int64_t{e} * a.chunks + blockIdx.x];
  }
  __syncwarp();
  const int64_t begin = blockIdx.x * a.chunk;
  for (int64_t first = begin; first < begin + a.chunk && first < a.rows; first += 32) {
    const int64_t i = first + lane;
    const int e = i < a.rows ? position_at(a, i) : -1;
    const unsigned same = __match_any_sync(kAll, e);
    const int before = __popc(same & ((1u << lane) - 1));
    const int row = e >= 0 ? next[e] + before : -1;
    __syncwarp();  // all have read
    if (e >= 0 && before == 0) next[e] += __popc(same);
    __syncwarp();
    if (e >= 0) {
      a.source[row] = static_cast<int32_t>(i);
      a.row_of.data[i / a.choices * a.row_of.stride + i % a.choices] = row;
    }
  }
}

template <int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    permute_kernel(const __grid_constant__ MoveArguments a) {
  const RowThreads<kThreads> place;
  if (place.row >= a.rows) return;
  if (a.first != nullptr && (place.row < *a.first || place.row >= *a.last)) return;
  const int64_t token = a.source[place.row] / a.choices;
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float x[4];
    read4(a.from.data + token * a.from.stride + c, n, a.quads, x);
    write4(a.to.data + place.row * a.to.stride + c, n, a.quads, x);
  });
}

constexpr int kReadTogether = 4;

/// kPart: rows outside [first, last) are neither read nor added.
template <int kThreads, bool kPart>
__global__ void __launch_bounds__(kRowBlock)
    combine_kernel(const __grid_constant__ MoveArguments a) {
  const RowThreads<kThreads> place;
  if (place.row >= a.rows) return;
  const int32_t* const row_of = a.row_of.data + place.row * a.row_of.stride;
  const float* const weight =
      a.weight.data != nullptr ? a.weight.data + place.row * a.weight.stride : nullptr;
  const int32_t first = kPart ? *a.first : 0, last = kPart ? *a.last : 0;
  const auto left_out = [&](int j) { return kPart && (row_of[j] < first || row_of[j] >= last); };
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float sum[4] = {};
    if (a.base.data != nullptr) {
      read4(a.base.data + place.row * a.base.stride + c, n, a.quads, sum);
    }
    const auto chosen = [&](int j) { return a.from.data + row_of[j] * a.from.stride + c; };
    const auto weight_of = [&](int j) { return weight != nullptr ? weight[j] : 1.0f; };
    const auto add = [&](float w, const float(&x)[4]) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] = fmaf(w, x[i], sum[i]);
    };
    int j = 0;
    if (!kPart && a.quads && n == 4) {  // the rows of some choices are read together, then added in order
      for (; j + kReadTogether <= a.choices; j += kReadTogether) {
        // Weights first: the compiler moves a row's read behind a branch before its use.
        float w[kReadTogether], x[kReadTogether][4];
#pragma unroll
        for (int k = 0; k < kReadTogether; ++k) w[k] = weight_of(j + k);
#pragma unroll
        for (int k = 0; k < kReadTogether; ++k) read4(chosen(j + k), 4, true, x[k]);
#pragma unroll
        for (int k = 0; k < kReadTogether; ++k) add(w[k], x[k]);
      }
    }
    for (; j < a.choices; ++j) {
      if (left_out(j)) continue;
      float x[4];
      read4(chosen(j), n, a.quads, x);
      add(weight_of(j), x);
    }
    write4(a.to.data + place.row * a.to.stride + c, n, a.quads, sum);
  });
}

template <bool kToExperts>
__global__ void __launch_bounds__(kRowBlock)
    order_kernel(const __grid_constant__ OrderArguments a) {
  const int64_t row = int64_t{blockIdx.x} * kRowBlock + threadIdx.x;
  if (row >= a.rows) return;
  const int64_t source = a.source[row];
  float& value = a.values.data[source / a.choices * a.values.stride + source % a.choices];
  if constexpr (kToExperts) {
    a.rows_data[row] = value;
  } else {
    value = a.rows_data[row];
  }
}

}  // namespace

void route_on(void* stream, const RouteArguments& a) {
  const size_t shared = sizeof(int) * static_cast<size_t>(a.experts);
  if (a.rows > 0) launch(count_choices_kernel, a.chunks, 32, shared, stream, a);
  launch(scan_chunks_kernel, a.experts, 32, 0, stream, a);
  launch(scan_experts_kernel, 1, 32, 0, stream, a.offsets, a.experts);
  if (a.rows > 0) launch(place_choices_kernel, a.chunks, 32, shared, stream, a);
}

void permute_on(void* stream, const MoveArguments& a) {
  launch_rows(permute_kernel<32>, permute_kernel<kRowBlock>, stream, a);
}

void combine_on(void* stream, const MoveArguments& a) {
  if (a.first != nullptr) {
    launch_rows(combine_kernel<32, true>, combine_kernel<kRowBlock, true>, stream, a);
  } else {
    launch_rows(combine_kernel<32, false>, combine_kernel<kRowBlock, false>, stream, a);
  }
}

void to_expert_order_on(void* stream, const OrderArguments& a) {
  if (a.rows > 0) {
    launch(order_kernel<true>, parts_over(a.rows, kRowBlock), kRowBlock, 0, stream, a);
  }
}

void to_token_order_on(void* stream, const OrderArguments& a) {
  if (a.rows > 0) {
    launch(order_kernel<false>, parts_over(a.rows, kRowBlock), kRowBlock, 0, stream, a);
  }
}

}  // namespace hearth::HEARTH_GPU
