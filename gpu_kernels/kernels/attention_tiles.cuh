// What attention's f32 kernels share. A block of threads owns a tile of rows (queries, or keys in the
// pass for dk and dv), which stay in shared memory, and streams tiles of 64 rows of the other side
// past it in pieces of 8 KiB. Two products are made of pieces:
//   scores  S[row, j]   = sum over columns c of rows[row, c] * streamed[j, c]   (pieces of columns)
//   values  O[row, c]  += sum over j of W[row, j] * streamed[j, c]             (pieces of rows j)
// A thread holds R rows: row(i) = group + 8 i, of 8 groups of 16 lanes; of S the columns lane + 16 j,
// of O the columns that `column` says. Products are f32 multiply-adds in a fixed order.
#pragma once

#include "gpu_kernels/kernels/async_copy.cuh"
#include "gpu_kernels/kernels/attention_sequences.cuh"
#include "gpu_kernels/kernels/numbers.cuh"

namespace hearth::HEARTH_GPU {

constexpr int kAttentionThreads = 128;
constexpr int kAttentionLanes = 16, kAttentionGroups = 8;
constexpr int kStreamed = 64;      // streamed rows that make one tile of scores
constexpr int kPieceColumns = 32;  // of a piece for scores
constexpr int kPiecePitch = 36;    // its rows lie this far apart: no two lanes on one bank
constexpr int kWeightPitch = kStreamed + 4;
constexpr int kSlotFloats = kStreamed * kPiecePitch;
constexpr int kSlots = 3;

/// Sizes that follow from the padded head dimension D and the rows a thread R.
template <int D, int R>
struct AttentionTile {
  static constexpr int kRows = kAttentionGroups * R;
  static constexpr int kPitch = D + 4;
  static constexpr int kColumns = D / kAttentionLanes;  // of O, a thread
  static constexpr int kPieceRows = 2048 / D;           // streamed rows in a piece for values
  static constexpr int kValuePieces = kStreamed / kPieceRows;
  static constexpr int kResidentFloats = kRows * kPitch;
  static constexpr int kWeightFloats = kRows * kWeightPitch;

  /// The column of O that a thread's number c stands for.
  __device__ static int column(int lane, int c) {
    if constexpr (D == 32) return lane * 2 + c;
    return c / 4 * 64 + lane * 4 + c % 4;
  }
};

/// Where a thread stands in its block.
struct AttentionThread {
  int lane, group;
  __device__ AttentionThread()
      : lane(static_cast<int>(threadIdx.x) % kAttentionLanes),
        group(static_cast<int>(threadIdx.x) / kAttentionLanes) {}
  __device__ int row(int i) const { return group + kAttentionGroups * i; }
};

/// The sum or maximum over the 16 lanes that hold a row, in every lane.
__device__ inline float sum_of_row(float x) {
  for (int step = kAttentionLanes / 2; step > 0; step /= 2) {
    x += __shfl_xor_sync(0xffffffffu, x, step);
  }
  return x;
}
__device__ inline float largest_of_row(float x) {
  for (int step = kAttentionLanes / 2; step > 0; step /= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  }
  return x;
}

__device__ inline float4 load4(const float* shared) { return load_wide<float4>(shared); }

/// Starts copying a [Rows, Columns] part of `from`, whose first element is `first`, to shared rows
/// `pitch` apart; zeros beyond `rows` and `columns`.
template <int Rows, int Columns>
__device__ inline void load_tile(float* shared, int pitch, const HeadMatrix& from,
                                 const float* first, int rows, int columns) {
  if (from.vectors) {
    for (int i = static_cast<int>(threadIdx.x); i < Rows * Columns / 4; i += kAttentionThreads) {
      const int r = i / (Columns / 4), c = i % (Columns / 4) * 4;
      const bool valid = r < rows && c < columns;
      copy_async16(shared + r * pitch + c, valid ? first + r * from.stride + c : from.data,
                   valid ? 16 : 0);
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < Rows * Columns; i += kAttentionThreads) {
      const int r = i / Columns, c = i % Columns;
      const bool valid = r < rows && c < columns;
      copy_async4(shared + r * pitch + c, valid ? first + r * from.stride + c : from.data, valid);
    }
  }
}

using PieceRing = CopyRing<float, kSlots, kSlotFloats>;

/// Adds to scores what the 32 columns of a piece give. `rows` is the resident tile at the piece's
/// first column.
template <int R>
__device__ inline void add_scores(const AttentionThread& thread, const float* rows, int pitch,
                                  const float* piece, float (&s)[R][4]) {
#pragma unroll 1
  for (int c = 0; c < kPieceColumns; c += 4) {
    float4 b[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      b[j] = load4(piece + (thread.lane + kAttentionLanes * j) * kPiecePitch + c);
    }
#pragma unroll
    for (int i = 0; i < R; ++i) {
      const float4 a = load4(rows + thread.row(i) * pitch + c);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        s[i][j] = fmaf(a.x, b[j].x, s[i][j]);
        s[i][j] = fmaf(a.y, b[j].y, s[i][j]);
        s[i][j] = fmaf(a.z, b[j].z, s[i][j]);
        s[i][j] = fmaf(a.w, b[j].w, s[i][j]);
      }
    }
  }
}

__device__ inline float component(const float4& x, int i) {
  return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}

/// Adds to O what the streamed rows of a piece give. `weights` is W at the piece's first row.
template <int D, int R>
__device__ inline void add_values(const AttentionThread& thread, const float* weights,
                                  const float* piece,
                                  float (&o)[R][AttentionTile<D, R>::kColumns]) {
  using Tile = AttentionTile<D, R>;
#pragma unroll 1
  for (int j = 0; j < Tile::kPieceRows; j += 4) {
    float4 w[R];
#pragma unroll
    for (int i = 0; i < R; ++i) w[i] = load4(weights + thread.row(i) * kWeightPitch + j);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float* row = piece + (j + k) * D;
      float v[Tile::kColumns];
      if constexpr (D == 32) {
        const float2 pair = load_wide<float2>(row + thread.lane * 2);
        v[0] = pair.x;
        v[1] = pair.y;
      } else {
#pragma unroll
        for (int c = 0; c < Tile::kColumns; c += 4) {
          const float4 four = load4(row + Tile::column(thread.lane, c));
          v[c] = four.x;
          v[c + 1] = four.y;
          v[c + 2] = four.z;
          v[c + 3] = four.w;
        }
      }
#pragma unroll
      for (int i = 0; i < R; ++i) {
        const float weight = component(w[i], k);
#pragma unroll
        for (int c = 0; c < Tile::kColumns; ++c) o[i][c] = fmaf(weight, v[c], o[i][c]);
      }
    }
  }
}

/// Writes a thread's O, times its row's factor, to rows of `to` from `first` on.
template <int D, int R, class Factor>
__device__ inline void store_rows(const AttentionThread& thread, float* first, int64_t stride,
                                  int rows, int columns, const Factor& factor,
                                  const float (&o)[R][AttentionTile<D, R>::kColumns]) {
  using Tile = AttentionTile<D, R>;
#pragma unroll
  for (int i = 0; i < R; ++i) {
    if (thread.row(i) >= rows) continue;
    float* row = first + thread.row(i) * stride;
    const float f = factor(i);
#pragma unroll
    for (int c = 0; c < Tile::kColumns; ++c) {
      const int column = Tile::column(thread.lane, c);
      if (column < columns) row[column] = f * o[i][c];
    }
  }
}

template <int N, int M>
__device__ inline void set_zero(float (&x)[N][M]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int j = 0; j < M; ++j) x[i][j] = 0.0f;
  }
}

}  // namespace hearth::HEARTH_GPU
