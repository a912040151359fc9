#include "gpu_kernels/kernels/rows.cuh"
#include "gpu_kernels/kernels/token_rows.h"

namespace hearth::HEARTH_GPU {
namespace {

// A thread sums its elements in f32, the row's threads theirs in f64.
template <int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    rmsnorm_kernel(const __grid_constant__ NormArguments a) {
  const RowThreads<kThreads> place;
  if (place.row >= a.rows) return;
  const float* const x_row = a.x.data + place.row * a.x.stride;
  float* const y_row = a.y.data + place.row * a.y.stride;
  float squares = 0;
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float x[4];
    read4(x_row + c, n, a.quads, x);
#pragma unroll
    for (int i = 0; i < 4; ++i) squares = fmaf(x[i], x[i], squares);
  });
  const double mean = place.sum(squares) / static_cast<double>(a.cols);
  const auto r = static_cast<float>(1.0 / sqrt(mean + a.eps));
  if (place.thread == 0) a.rstd[place.row] = r;
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float x[4], w[4];
    read4(x_row + c, n, a.quads, x);
    read4(a.weight.data, a.weight.stored, c, n, a.quads, w);
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = x[i] * r * w[i];
    write4(y_row + c, n, a.quads, x);
  });
}

// dx = r * (dy * weight - x * r^2 * mean(dy * weight * x)).
template <int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    rmsnorm_gradient_kernel(const __grid_constant__ NormArguments a) {
  const RowThreads<kThreads> place;
  if (place.row >= a.rows) return;
  const float* const x_row = a.x.data + place.row * a.x.stride;
  const float* const dy_row = a.dy.data + place.row * a.dy.stride;
  float* const dx_row = a.dx.data + place.row * a.dx.stride;
  float products = 0;
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float x[4], g[4], w[4];
    read4(x_row + c, n, a.quads, x);
    read4(dy_row + c, n, a.quads, g);
    read4(a.weight.data, a.weight.stored, c, n, a.quads, w);
#pragma unroll
    for (int i = 0; i < 4; ++i) products = fmaf(g[i] * w[i], x[i], products);
  });
  const float r = a.rstd[place.row];
  const double mean = place.sum(products) * r / static_cast<double>(a.cols);
  const float shift = r * static_cast<float>(mean);
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float x[4], g[4], w[4];
    read4(x_row + c, n, a.quads, x);
    read4(dy_row + c, n, a.quads, g);
    read4(a.weight.data, a.weight.stored, c, n, a.quads, w);
#pragma unroll
    for (int i = 0; i < 4; ++i) g[i] = r * (g[i] * w[i] - x[i] * shift);
    write4(dx_row + c, n, a.quads, g);
  });
}

constexpr int kColumns = 32, kRowLanes = 8;

/// A block a part of the rows and 32 columns: each of eight threads a column takes every eighth row.
__global__ void __launch_bounds__(kColumns* kRowLanes)
    norm_parts_kernel(const __grid_constant__ NormArguments a) {
  __shared__ float sums[kRowLanes][kColumns];
  const int column_tiles = static_cast<int>(parts_over(a.cols, kColumns));
  const int part = static_cast<int>(blockIdx.x) / column_tiles;
  const int lane = static_cast<int>(threadIdx.x) % kColumns;
  const int first = static_cast<int>(threadIdx.x) / kColumns;
  const int64_t c = int64_t{blockIdx.x % column_tiles} * kColumns + lane;
  const int64_t begin = part * norm_part_rows(a.rows);
  const int64_t end =
      begin + norm_part_rows(a.rows) < a.rows ? begin + norm_part_rows(a.rows) : a.rows;
  float sum = 0;
  if (c < a.cols) {
    for (int64_t t = begin + first; t < end; t += kRowLanes) {
      sum = fmaf(a.dy.data[t * a.dy.stride + c], a.x.data[t * a.x.stride + c] * a.rstd[t], sum);
    }
  }
  sums[first][lane] = sum;
  __syncthreads();
  if (first != 0 || c >= a.cols) return;
  float all = 0;
  for (int i = 0; i < kRowLanes; ++i) all += sums[i][lane];
  a.partial[part * a.cols + c] = all;
}

/// A block 32 columns: each of eight threads a column adds every eighth part, one of them their sums.
__global__ void __launch_bounds__(kColumns* kRowLanes)
    add_parts_kernel(const float* partial, int64_t parts, int64_t cols, float* to) {
  __shared__ double sums[kRowLanes][kColumns];
  const int lane = static_cast<int>(threadIdx.x) % kColumns;
  const int first = static_cast<int>(threadIdx.x) / kColumns;
  const int64_t c = int64_t{blockIdx.x} * kColumns + lane;
  double sum = 0;
  if (c < cols) {
#pragma unroll 8  // so many reads under way: the additions wait for each other
    for (int64_t i = first; i < parts; i += kRowLanes) {
      sum += static_cast<double>(partial[i * cols + c]);
    }
  }
  sums[first][lane] = sum;
  __syncthreads();
  if (first != 0 || c >= cols) return;
  double all = 0;
  for (int i = 0; i < kRowLanes; ++i) all += sums[i][lane];
  to[c] += static_cast<float>(all);
}

}  // namespace

void rmsnorm_on(void* stream, const NormArguments& a) {
  launch_rows(rmsnorm_kernel<32>, rmsnorm_kernel<kRowBlock>, stream, a);
}

void rmsnorm_gradient_on(void* stream, const NormArguments& a) {
  launch_rows(rmsnorm_gradient_kernel<32>, rmsnorm_gradient_kernel<kRowBlock>, stream, a);
}

void rmsnorm_weight_gradient_on(void* stream, const NormArguments& a) {
  if (a.rows == 0 || a.cols == 0) return;
  const int64_t parts = parts_over(a.rows, norm_part_rows(a.rows));
  launch(norm_parts_kernel, parts * parts_over(a.cols, kColumns), kColumns * kRowLanes, 0, stream,
         a);
  launch(add_parts_kernel, parts_over(a.cols, kColumns), kColumns * kRowLanes, 0, stream, a.partial,
         parts, a.cols, a.weight_gradient);
}

}  // namespace hearth::HEARTH_GPU
