// What surrounds products, row by row: tiles of experts, operands rounded or dropped, SwiGLU.
#pragma once

#include "gpu_kernels/kernels/dropout.cuh"
#include "gpu_kernels/kernels/operand.cuh"
#include "gpu_kernels/kernels/quads.cuh"
#include "gpu_kernels/kernels/product_rows.h"

namespace hearth::HEARTH_GPU {

constexpr int kRowThreads = 128;
constexpr int kQuad = 4;  // columns that a thread takes together, as dropout does

/// The group of a row; the row is one of a group.
__device__ inline int group_of_row(const int32_t* offsets, int groups, int64_t row) {
  int low = 0, high = groups - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (row < offsets[middle + 1]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// The rule of a row; null where nothing is dropped.
__device__ inline const DropoutRule* rule_of_row(const RowGroups& groups, const DropoutRule* rules,
                                                 int64_t row) {
  if (rules == nullptr) return nullptr;
  const int group = groups.offsets != nullptr ? group_of_row(groups.offsets, groups.count, row) : 0;
  return rules[group].limit > 0 ? rules + group : nullptr;
}

/// write4 and read4 of quads.cuh, in one access where the address allows it: a thread looks itself,
/// as rows of operands come with strides of any kind.
__device__ inline void put_quad(void* to, Stored stored, int64_t at, int n,
                                const float (&x)[kQuad]) {
  const auto address = reinterpret_cast<uintptr_t>(to) + at * size_of(stored);
  write4(to, stored, at, n, address % (kQuad * size_of(stored)) == 0, x);
}
__device__ inline void get_quad(const float* from, int n, float (&x)[kQuad]) {
  read4(from, n, reinterpret_cast<uintptr_t>(from) % (kQuad * sizeof(float)) == 0, x);
}

__device__ inline void drop_quad(const DropoutRule* rule, int64_t row, int64_t quad,
                                 float (&x)[kQuad]) {
  if (rule == nullptr) return;
  const Philox numbers = dropout_numbers(*rule, row, quad);
  for (int i = 0; i < kQuad; ++i) x[i] = dropped(*rule, numbers.word[i], x[i]);
}

/// f(first column, columns) for the quads of a row, a block's threads in turn.
template <class F>
__device__ inline void for_quads(int64_t columns, const F& f) {
  for (int64_t c = kQuad * int64_t{threadIdx.x}; c < columns; c += kQuad * int64_t{blockDim.x}) {
    f(c, columns - c < kQuad ? static_cast<int>(columns - c) : kQuad);
  }
}

__device__ inline bool row_is_used(const RowGroups& groups, int64_t row) {
  return groups.offsets == nullptr ||
         (row >= groups.offsets[0] && row < groups.offsets[groups.count]);
}

constexpr int kPlanThreads = 256;

__device__ inline int tiles_of(int rows) { return (rows + kTileRows - 1) / kTileRows; }

/// One block: tiles[i] of all tiles, those of a group one after the other; then tiles of no rows.
__global__ void plan_tiles(const int32_t* offsets, int groups, TilePlace* tiles, int tile_count) {
  __shared__ int ends[kPlanThreads];
  const int thread = static_cast<int>(threadIdx.x);
  int before = 0;  // tiles of the groups before these
  for (int first = 0; first < groups; first += kPlanThreads) {
    const int g = first + thread;
    const int begin = g < groups ? offsets[g] : 0, end = g < groups ? offsets[g + 1] : 0;
    ends[thread] = tiles_of(end - begin);
    for (int reach = 1; reach < kPlanThreads; reach *= 2) {
      __syncthreads();
      const int left = thread >= reach ? ends[thread - reach] : 0;
      __syncthreads();
      ends[thread] += left;
    }
    __syncthreads();
    int at = before + ends[thread] - tiles_of(end - begin);
    for (int row = begin; row < end; row += kTileRows, ++at) {
      tiles[at] = {g, end - row < kTileRows ? end - row : kTileRows, row};
    }
    before += ends[kPlanThreads - 1];
    __syncthreads();
  }
  for (int i = before + thread; i < tile_count; i += kPlanThreads) tiles[i] = {0, 0, 0};
}

/// A block a row: to = drop(from), as f32 or bf16.
__global__ void prepare_rows(const __grid_constant__ PrepareArgs args) {
  const int64_t row = blockIdx.x;
  if (!row_is_used(args.groups, row)) return;
  const DropoutRule* const rule = rule_of_row(args.groups, args.dropouts, row);
  const int64_t source = args.source != nullptr ? args.source[row] / args.choices : row;
  const float* const from = args.from + source * args.from_stride;
  for_quads(args.columns, [&](int64_t c, int n) {
    float x[kQuad];
    get_quad(from + c, n, x);
    drop_quad(rule, row, c / kQuad, x);
    put_quad(args.to, args.stored, row * args.to_stride + c, n, x);
  });
}

/// A block a row: h = drop(silu(gate) * up), as f32 or bf16.
__global__ void swiglu_rows(const __grid_constant__ SwigluArgs args) {
  const int64_t row = blockIdx.x;
  if (!row_is_used(args.groups, row)) return;
  const DropoutRule* const rule = rule_of_row(args.groups, args.dropouts, row);
  for_quads(args.columns, [&](int64_t c, int n) {
    float gate[kQuad], up[kQuad];
    get_quad(args.gate + row * args.gate_stride + c, n, gate);
    get_quad(args.up + row * args.up_stride + c, n, up);
    for (int i = 0; i < kQuad; ++i) gate[i] = gate[i] * logistic(gate[i]) * up[i];
    drop_quad(rule, row, c / kQuad, gate);
    put_quad(args.h, args.stored, row * args.h_stride + c, n, gate);
  });
}

/// A block a row: from z = dy W_down and the combine weight w: drow_weight = <z, h>; gate and up
/// become their gradients of dh = w * z, also as operands; w * h as an operand, and dropped.
__global__ void swiglu_gradient_rows(const __grid_constant__ SwigluGradientArgs args) {
  __shared__ double parts[kRowThreads];
  const int64_t row = blockIdx.x;
  if (!row_is_used(args.groups, row)) return;
  const DropoutRule* const rule = rule_of_row(args.groups, args.dropouts, row);
  const float weight = args.row_weight[row];
  float* const gate_row = args.gate + row * args.gate_stride;
  float* const up_row = args.up + row * args.up_stride;
  double sum = 0;
  for_quads(args.columns, [&](int64_t c, int n) {
    float z[kQuad], gate[kQuad], up[kQuad], h[kQuad];
    get_quad(args.z + row * args.z_stride + c, n, z);
    get_quad(gate_row + c, n, gate);
    get_quad(up_row + c, n, up);
    for (int i = 0; i < kQuad; ++i) {
      const float s = logistic(gate[i]), silu = gate[i] * s, dh = weight * z[i];
      h[i] = silu * up[i];
      sum += static_cast<double>(z[i]) * h[i];
      h[i] *= weight;
      gate[i] = dh * up[i] * s * (1.0f + gate[i] * (1.0f - s));
      up[i] = dh * silu;
    }
    put_quad(gate_row, Stored::f32, c, n, gate);
    put_quad(up_row, Stored::f32, c, n, up);
    const int64_t at = row * args.operand_stride + c;
    if (args.gate_operand != nullptr) put_quad(args.gate_operand, Stored::bf16, at, n, gate);
    if (args.up_operand != nullptr) put_quad(args.up_operand, Stored::bf16, at, n, up);
    put_quad(args.h, args.h_stored, row * args.h_stride + c, n, h);
    if (args.h_dropped != nullptr) {
      drop_quad(rule, row, c / kQuad, h);
      put_quad(args.h_dropped, args.stored, at, n, h);
    }
  });
  parts[threadIdx.x] = sum;
  for (int half = kRowThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) args.drow_weight[row] = static_cast<float>(parts[0]);
}

/// A block a row: to = bias.
__global__ void fill_bias(Operand bias, float* to, int64_t stride, int64_t columns) {
  for_quads(columns, [&](int64_t c, int n) {
    float x[kQuad];
    for (int i = 0; i < kQuad; ++i) x[i] = i < n ? load_element(bias.data, bias.stored, c + i) : 0;
    put_quad(to, Stored::f32, int64_t{blockIdx.x} * stride + c, n, x);
  });
}

// Sixteen columns of a row are 64 bytes, no less than memory gives at once; so narrow blocks are many.
constexpr int kSumColumns = 16, kSumLanes = 64;

/// A block 16 columns: to += the sums of the columns of x. Each of 64 threads a column sums every
/// 64th row; then one half of the sums is added to the other until one is left.
__global__ void add_column_sums(const float* x, int64_t stride, int64_t rows, int64_t columns,
                                float* to) {
  __shared__ float parts[kSumLanes][kSumColumns];
  const int lane = static_cast<int>(threadIdx.x) % kSumColumns;
  const int first = static_cast<int>(threadIdx.x) / kSumColumns;
  const int64_t column = int64_t{blockIdx.x} * kSumColumns + lane;
  float sum = 0;
  if (column < columns) {
#pragma unroll 8  // so many reads under way: the additions wait for each other
    for (int64_t r = first; r < rows; r += kSumLanes) sum += x[r * stride + column];
  }
  parts[first][lane] = sum;
  for (int half = kSumLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (first < half) parts[first][lane] += parts[first + half][lane];
  }
  if (first == 0 && column < columns) to[column] += parts[0][lane];
}

}  // namespace hearth::HEARTH_GPU
