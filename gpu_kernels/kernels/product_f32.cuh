// Products in f32: every product and sum an FMA of the ordinary units, no TF32. A thread computes
// 8 x kThreadColumns sums from tiles in shared memory; the next tiles are read to registers meanwhile.
// Operands are of any stored type and alignment.
#pragma once

#include "gpu_kernels/kernels/product_tile.cuh"

namespace hearth::HEARTH_GPU {

struct F32Tiling {
  static constexpr int kThreads = 256;
  static constexpr int kDepth = 16;      // of a step
  static constexpr int kThreadRows = 8;  // 16 threads down, 16 across
  static constexpr int kRows = 16 * kThreadRows;
  static constexpr int kPadding = 4;  // of a row in shared memory, against bank conflicts
};

/// Reads one operand's tiles. kAlong: the depth runs along the rows.
template <bool kAlong, int kOuter>
class F32Source {
 public:
  static constexpr int kMine = kOuter * F32Tiling::kDepth / F32Tiling::kThreads;
  using Tile = float[F32Tiling::kDepth][kOuter + F32Tiling::kPadding];

  /// From element (row, column) of the operand on; of `outer` rows or columns, `depth` deep.
  __device__ void begin(const void* data, int64_t stride, Stored stored, int64_t row,
                        int64_t column, int outer, int64_t depth) {
    data_ = data;
    stride_ = stride;
    stored_ = stored;
    first_ = row * stride + column;
    outer_ = outer;
    depth_ = depth;
  }
  __device__ void read(float (&x)[kMine]) {
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const int o = outer_of(i), d = depth_of(i);
      const int64_t element = first_ + (kAlong ? o * stride_ + d : d * stride_ + o);
      x[i] = o < outer_ && d < depth_ ? load_element(data_, stored_, element) : 0.0f;
    }
    first_ += kAlong ? int64_t{F32Tiling::kDepth} : F32Tiling::kDepth * stride_;
    depth_ -= F32Tiling::kDepth;
  }
  __device__ static void write(Tile& tile, const float (&x)[kMine]) {
#pragma unroll
    for (int i = 0; i < kMine; ++i) tile[depth_of(i)][outer_of(i)] = x[i];
  }

 private:
  // Neighbouring threads read neighbouring elements.
  __device__ static int place(int i) {
    return static_cast<int>(threadIdx.x) + i * F32Tiling::kThreads;
  }
  __device__ static int outer_of(int i) {
    return kAlong ? place(i) / F32Tiling::kDepth : place(i) % kOuter;
  }
  __device__ static int depth_of(int i) {
    return kAlong ? place(i) % F32Tiling::kDepth : place(i) / kOuter;
  }

  const void* data_ = nullptr;
  int64_t stride_ = 0, first_ = 0, depth_ = 0;
  int outer_ = 0;
  Stored stored_ = Stored::f32;
};

template <Form form, int kThreadColumns>
__global__ void __launch_bounds__(F32Tiling::kThreads)
    product_f32(const __grid_constant__ ProductArgs args) {
  using T = F32Tiling;
  constexpr int kColumns = 16 * kThreadColumns;
  constexpr int kGroup = 4;  // neighbouring sums of a thread, read as one
  using A = F32Source<form != Form::wgrad, T::kRows>;
  using B = F32Source<form == Form::forward, kColumns>;
  alignas(16) __shared__ typename A::Tile a_tiles[2];
  alignas(16) __shared__ typename B::Tile b_tiles[2];

  const ProductTile tile =
      product_tile<form, T::kRows, kColumns>(args, static_cast<int>(blockIdx.x));
  if (tile.rows == 0 || tile.columns == 0) return;
  const ProductGroup& group = args.groups != nullptr ? args.groups[tile.group] : args.one;

  A a;
  B b;
  const auto begin = [&](int segment) {
    if constexpr (form == Form::wgrad) {
      const Operand &left = args.a[0], &right = args.a[1];
      a.begin(left.data, left.stride, left.stored, tile.first, tile.row, tile.rows, tile.depth);
      b.begin(right.data, right.stride, right.stored, tile.first, tile.column, tile.columns,
              tile.depth);
    } else {
      const Operand& left = args.a[segment];
      a.begin(left.data, left.stride, left.stored, tile.row, 0, tile.rows, group.depth[segment]);
      b.begin(group.weight[segment], group.weight_stride[segment], group.stored[segment],
              form == Form::forward ? tile.column : 0, form == Form::forward ? 0 : tile.column,
              tile.columns, group.depth[segment]);
    }
  };
  const int first_steps = static_cast<int>(
      ((form == Form::wgrad ? tile.depth : int64_t{group.depth[0]}) + T::kDepth - 1) / T::kDepth);
  const int steps =
      first_steps + (form == Form::wgrad ? 0 : (group.depth[1] + T::kDepth - 1) / T::kDepth);

  float sums[T::kThreadRows][kThreadColumns];
#pragma unroll
  for (int i = 0; i < T::kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) sums[i][j] = 0;
  }
  float next_a[A::kMine], next_b[B::kMine];
  const auto read = [&](int step) {
    if (step == first_steps) begin(1);
    a.read(next_a);
    b.read(next_b);
  };
  const auto write = [&](int step) {
    A::write(a_tiles[step % 2], next_a);
    B::write(b_tiles[step % 2], next_b);
  };
  // Four neighbours at a time, 64 apart (or, of a narrow tile, its own few).
  const int thread_row = static_cast<int>(threadIdx.x) / 16;
  const int thread_column = static_cast<int>(threadIdx.x) % 16;
  const auto row_of = [&](int i) { return i / kGroup * 64 + thread_row * kGroup + i % kGroup; };
  const auto column_of = [&](int j) {
    if constexpr (kThreadColumns < kGroup) return thread_column * kThreadColumns + j;
    return j / kGroup * 64 + thread_column * kGroup + j % kGroup;
  };

  begin(first_steps > 0 ? 0 : 1);
  if (steps > 0) {
    read(0);
    write(0);
  }
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    if (step + 1 < steps) read(step + 1);
#pragma unroll
    for (int d = 0; d < T::kDepth; ++d) {
      float x[T::kThreadRows], y[kThreadColumns];
#pragma unroll
      for (int i = 0; i < T::kThreadRows; ++i) x[i] = a_tiles[step % 2][d][row_of(i)];
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) y[j] = b_tiles[step % 2][d][column_of(j)];
#pragma unroll
      for (int i = 0; i < T::kThreadRows; ++i) {
#pragma unroll
        for (int j = 0; j < kThreadColumns; ++j) sums[i][j] = fmaf(x[i], y[j], sums[i][j]);
      }
    }
    // The other tiles were read in the step before the last barrier.
    if (step + 1 < steps) write(step + 1);
  }

  const ProductOutput out = product_output<form>(args, group, tile);
#pragma unroll
  for (int i = 0; i < T::kThreadRows; ++i) {
    if (row_of(i) >= tile.rows) continue;
    float2 old[kThreadColumns / 2];
#pragma unroll
    for (int j = 0; j < kThreadColumns; j += 2) {
      const int column = column_of(j);
      const bool second = column + 1 < tile.columns;
      old[j / 2] = column < tile.columns ? out.before(row_of(i), column, second) : float2{0, 0};
    }
#pragma unroll
    for (int j = 0; j < kThreadColumns; j += 2) {
      const int column = column_of(j);
      if (column >= tile.columns) continue;
      out.put(row_of(i), column, column + 1 < tile.columns, old[j / 2], sums[i][j], sums[i][j + 1]);
    }
  }
}

}  // namespace hearth::HEARTH_GPU
