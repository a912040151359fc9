// Products of bf16 operands with f32 sums on the tensor cores: mma.sync over tiles that cp.async
// brings to shared memory some steps ahead.
//
// A block computes a tile of kRows x kColumns, each warp a part of it. Both operands lie in shared
// memory as they lie in global memory, 32 of the depth at a time: with the depth along the row
// (outer x 32) or across it (32 x outer), the chunks of eight elements in a row permuted (chunk_place).
//
// Activations are bf16 in rows of whole chunks, 16-byte aligned; so are weights where kCopied, else
// they are of any type and pass through registers.
#pragma once

#include "gpu_kernels/kernels/async_copy.cuh"
#include "gpu_kernels/kernels/mma.cuh"
#include "gpu_kernels/kernels/product_tile.cuh"

namespace hearth::HEARTH_GPU {

constexpr int kStepDepth = 32;
constexpr int kStages = 4;

/// Brings one operand's tiles to shared memory. kAlong: the depth runs along the rows.
template <bool kAlong, int kOuter, int kThreads, bool kCopied>
class TileSource {
 public:
  static constexpr int kChunks = kOuter * kStepDepth / kChunk;
  static constexpr int kMine = kChunks / kThreads;
  static constexpr int kChunksPerRow = (kAlong ? kStepDepth : kOuter) / kChunk;
  static constexpr int kRowsBetween = kThreads / kChunksPerRow;  // of a thread's chunks
  static_assert(kChunks % kThreads == 0 && kThreads % kChunksPerRow == 0);

  /// From element (row, column) of the operand on; of `outer` rows or columns, `depth` deep.
  __device__ void begin(const void* data, int64_t stride, Stored stored, int64_t row,
                        int64_t column, int outer, int depth) {
    const int size = kCopied ? 2 : size_of(stored);
    row_ = static_cast<int>(threadIdx.x) / kChunksPerRow;
    chunk_ = static_cast<int>(threadIdx.x) % kChunksPerRow;
    from_ =
        static_cast<const char*>(data) + ((row + row_) * stride + column + chunk_ * kChunk) * size;
    hop_ = kRowsBetween * stride * size;
    step_ = kAlong ? int64_t{kStepDepth} * size : kStepDepth * stride * size;
    outer_ = outer;
    depth_ = depth;
    stored_ = stored;
  }

  /// Starts the copies of the next step. Nothing is read for what is not there.
  __device__ void copy(uint4* to) {
#pragma unroll
    for (int i = 0; i < kMine; ++i) copy_async16(to + place(i), from_ + i * hop_, 2 * valid(i));
    next();
  }
  /// The same for other types, through registers.
  __device__ void convert(uint4* to) {
    uint4 chunks[kMine];
#pragma unroll
    for (int i = 0; i < kMine; ++i) chunks[i] = load_chunk(from_ + i * hop_, stored_, 0, valid(i));
#pragma unroll
    for (int i = 0; i < kMine; ++i) to[place(i)] = chunks[i];
    next();
  }

 private:
  __device__ int place(int i) const {
    return chunk_place<kChunksPerRow>(row_ + i * kRowsBetween, chunk_);
  }
  /// Elements of chunk i that are there.
  __device__ int valid(int i) const {
    const int row = row_ + i * kRowsBetween;
    if constexpr (kAlong) return row < outer_ ? clamp_int(depth_ - chunk_ * kChunk, 0, kChunk) : 0;
    return row < depth_ ? clamp_int(outer_ - chunk_ * kChunk, 0, kChunk) : 0;
  }
  __device__ void next() {
    from_ += step_;
    depth_ -= kStepDepth;
  }

  const char* from_ = nullptr;
  int64_t hop_ = 0, step_ = 0;
  int row_ = 0, chunk_ = 0, outer_ = 0, depth_ = 0;
  Stored stored_ = Stored::bf16;
};

/// A warp's fragments of sixteen of the depth from tiles in shared memory, in parts of sixteen of the
/// outer dimension: for a sixteen rows, for b two of eight columns.
template <bool kAlong, int kOuter, bool kIsB, int kParts>
class Fragments {
 public:
  static constexpr int kHalves = kStepDepth / 16;

  /// From this row or column on, a multiple of 32. What ldmatrix wants of each lane is found once: the
  /// permutation of chunks does not change with sixteen rows more.
  __device__ void begin(int outer) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    // The four 8x8 parts in the order of their registers: of a by rows first, of b by depth first.
    const int low = (lane >> 3) & 1, high = lane >> 4;
    const int outer_part = kIsB ? high : low, depth_part = kIsB ? low : high;
    if constexpr (kAlong) {
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        at_[half] =
            chunk_place<kChunksPerRow>(outer + outer_part * 8 + (lane & 7), 2 * half + depth_part);
      }
    } else {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        at_[part] = chunk_place<kChunksPerRow>(depth_part * 8 + (lane & 7),
                                               outer / kChunk + 2 * part + outer_part);
      }
    }
  }
  __device__ void load(uint32_t (&to)[kParts][4], const uint4* tile, int half) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      if constexpr (kAlong) {
        ldmatrix_x4(to[part], tile + at_[half] + part * 16 * kChunksPerRow);
      } else {
        ldmatrix_x4_trans(to[part], tile + at_[part] + half * 16 * kChunksPerRow);
      }
    }
  }

 private:
  static constexpr int kChunksPerRow = (kAlong ? kStepDepth : kOuter) / kChunk;
  int at_[kAlong ? kHalves : kParts];
};

template <Form form, int kRows, int kColumns, int kWarpRows, int kWarpColumns, bool kCopied>
struct Bf16Tiling {
  static constexpr int kWarps = (kRows / kWarpRows) * (kColumns / kWarpColumns);
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kAChunks = kRows * kStepDepth / kChunk;
  static constexpr int kBChunks = kColumns * kStepDepth / kChunk;
  static constexpr int kSharedBytes = kStages * (kAChunks + kBChunks) * 16;
  static constexpr bool kAAlong = form != Form::wgrad;
  static constexpr bool kBAlong = form == Form::forward;
};

template <Form form, int kRows, int kColumns, int kWarpRows, int kWarpColumns, bool kCopied>
__global__ void __launch_bounds__(
    Bf16Tiling<form, kRows, kColumns, kWarpRows, kWarpColumns, kCopied>::kThreads)
    product_bf16(const __grid_constant__ ProductArgs args) {
  using Tiling = Bf16Tiling<form, kRows, kColumns, kWarpRows, kWarpColumns, kCopied>;
  uint4* const shared_chunks = shared_memory<uint4>();
  constexpr int kStageChunks = Tiling::kAChunks + Tiling::kBChunks;
  constexpr int kM = kWarpRows / 16, kN = kWarpColumns / 8;

  const ProductTile tile = product_tile<form, kRows, kColumns>(args, static_cast<int>(blockIdx.x));
  if (tile.rows == 0 || tile.columns == 0) return;
  const ProductGroup& group = args.groups != nullptr ? args.groups[tile.group] : args.one;

  TileSource<Tiling::kAAlong, kRows, Tiling::kThreads, true> a;
  TileSource<Tiling::kBAlong, kColumns, Tiling::kThreads, kCopied> b;
  const auto begin = [&](int segment) {
    if constexpr (form == Form::wgrad) {
      a.begin(args.a[0].data, args.a[0].stride, Stored::bf16, tile.first, tile.row, tile.rows,
              static_cast<int>(tile.depth));
      b.begin(args.a[1].data, args.a[1].stride, Stored::bf16, tile.first, tile.column, tile.columns,
              static_cast<int>(tile.depth));
    } else {
      a.begin(args.a[segment].data, args.a[segment].stride, Stored::bf16, tile.row, 0, tile.rows,
              group.depth[segment]);
      b.begin(group.weight[segment], group.weight_stride[segment], group.stored[segment],
              form == Form::forward ? tile.column : 0, form == Form::forward ? 0 : tile.column,
              tile.columns, group.depth[segment]);
    }
  };
  const int first_steps = static_cast<int>(
      ((form == Form::wgrad ? tile.depth : int64_t{group.depth[0]}) + kStepDepth - 1) / kStepDepth);
  const int steps =
      first_steps + (form == Form::wgrad ? 0 : (group.depth[1] + kStepDepth - 1) / kStepDepth);

  float sums[kM][kN][4];
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[m][n][i] = 0;
    }
  }

  const auto stage = [&](int step) { return shared_chunks + (step % kStages) * kStageChunks; };
  const auto start = [&](int step) {
    if (step < steps) {
      if (step == first_steps) begin(1);
      a.copy(stage(step));
      if constexpr (kCopied) {
        b.copy(stage(step) + Tiling::kAChunks);
      } else {
        b.convert(stage(step) + Tiling::kAChunks);
      }
    }
    commit_copies();
  };
  // Afterwards the tiles of the step after `step` are there, and nobody reads those of `step` any more.
  const auto await_next = [&] {
    wait_copies<kStages - 2>();
    __syncthreads();
  };

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / (kColumns / kWarpColumns) * kWarpRows;
  const int warp_column = warp % (kColumns / kWarpColumns) * kWarpColumns;
  Fragments<Tiling::kAAlong, kRows, false, kM> a_fragments;
  Fragments<Tiling::kBAlong, kColumns, true, kN / 2> b_fragments;
  a_fragments.begin(warp_row);
  b_fragments.begin(warp_column);
  uint32_t fa[2][kM][4], fb[2][kN / 2][4];  // of this half of a step and of the next
  const auto load = [&](int step, int half) {
    a_fragments.load(fa[half], stage(step), half);
    b_fragments.load(fb[half], stage(step) + Tiling::kAChunks, half);
  };
  static_assert(kStepDepth == 32);

  begin(first_steps > 0 ? 0 : 1);
  for (int step = 0; step < kStages - 1; ++step) start(step);
  await_next();
  load(0, 0);
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Fragments come while the products of those before them are formed.
      if (half == 0) {
        load(step, 1);
        start(step + kStages - 1);
      } else {
        await_next();
        load(step + 1, 0);  // past the last step: of no use
      }
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int n = 0; n < kN; ++n) {
          const uint32_t pair[2] = {fb[half][n / 2][n % 2 * 2], fb[half][n / 2][n % 2 * 2 + 1]};
          mma_m16n8k16(sums[m][n], fa[half][m], pair);
        }
      }
    }
  }

  // A thread holds, of each 16 x 8 part, two neighbours in row lane / 4 and two eight rows below.
  const ProductOutput out = product_output<form>(args, group, tile);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = warp_row + 16 * m + 8 * half + lane / 4;
      if (i >= tile.rows) continue;
      const auto column = [&](int n) { return warp_column + 8 * n + lane % 4 * 2; };
      float2 old[kN];
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const int j = column(n);
        old[n] = j < tile.columns ? out.before(i, j, j + 1 < tile.columns) : float2{0, 0};
      }
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const int j = column(n);
        if (j >= tile.columns) continue;
        out.put(i, j, j + 1 < tile.columns, old[n], sums[m][n][2 * half], sums[m][n][2 * half + 1]);
      }
    }
  }
}

}  // namespace hearth::HEARTH_GPU
