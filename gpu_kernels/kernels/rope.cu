#include "gpu_kernels/kernels/rows.cuh"
#include "gpu_kernels/kernels/token_rows.h"

namespace hearth::HEARTH_GPU {
namespace {

/// A block a token; a thread takes pairs of any head. A position that is not there makes NaN.
__global__ void __launch_bounds__(kRowBlock) rope_kernel(const __grid_constant__ RopeArguments a) {
  const int64_t token = blockIdx.x, position = a.positions[token];
  const bool known = position >= 0 && position < a.position_count;
  const auto half = static_cast<int>(a.half), pairs = static_cast<int>(a.heads) * half;
  float* const row = a.x.data + token * a.x.stride;
  for (int i = static_cast<int>(threadIdx.x); i < pairs; i += kRowBlock) {
    const int head = i / half, j = i - head * half;
    const float c = known ? a.cosine.data[position * a.cosine.stride + j] : NAN;
    const float s = known ? a.sign * a.sine.data[position * a.sine.stride + j] : NAN;
    float* const first = row + 2 * head * half + j;
    const float x1 = first[0], x2 = first[half];
    first[0] = x1 * c - x2 * s;
    first[half] = x2 * c + x1 * s;
  }
}

template <int kThreads>
__global__ void __launch_bounds__(kRowBlock) gate_kernel(const __grid_constant__ GateArguments a) {
  const RowThreads<kThreads> place;
  if (place.row >= a.rows) return;
  const float gate = logistic(a.logits[place.row]);
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float x[4];
    read4(a.x.data + place.row * a.x.stride + c, n, a.quads, x);
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] *= gate;
    write4(a.out.data + place.row * a.out.stride + c, n, a.quads, x);
  });
}

template <int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    gate_gradient_kernel(const __grid_constant__ GateArguments a) {
  const RowThreads<kThreads> place;
  if (place.row >= a.rows) return;
  const float logit = a.logits[place.row], gate = logistic(logit);
  float products = 0;
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float dy[4], y[4];
    read4(a.x.data + place.row * a.x.stride + c, n, a.quads, dy);
    read4(a.y.data + place.row * a.y.stride + c, n, a.quads, y);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      products = fmaf(dy[i], y[i], products);
      dy[i] *= gate;
    }
    write4(a.out.data + place.row * a.out.stride + c, n, a.quads, dy);
  });
  // The logit has been read by all when the sum is there: dlogits may be logits. 1 - s as the gate of
  // the opposite, which does not cancel.
  const double sum = place.sum(products);
  if (place.thread == 0) {
    a.dlogits[place.row] = static_cast<float>(static_cast<double>(logistic(-logit)) * sum);
  }
}

}  // namespace

void rope_on(void* stream, const RopeArguments& a) {
  if (a.rows > 0) launch(rope_kernel, a.rows, kRowBlock, 0, stream, a);
}

void sigmoid_gate_on(void* stream, const GateArguments& a) {
  launch_rows(gate_kernel<32>, gate_kernel<kRowBlock>, stream, a);
}

void sigmoid_gate_gradient_on(void* stream, const GateArguments& a) {
  launch_rows(gate_gradient_kernel<32>, gate_gradient_kernel<kRowBlock>, stream, a);
}

}  // namespace hearth::HEARTH_GPU
