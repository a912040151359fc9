// What attention's kernels on the tensor cores share: operands in bf16, sums in f32 (mma.sync), the
// scheme of FlashAttention-2 (Dao, 2023, arXiv 2307.08691). A block of four warps owns a tile of rows
// (queries, or keys in the pass for dk and dv), which stay in shared memory, and streams tiles of rows
// of the other side past it. A warp owns 16 or 32 of the rows (kParts x 16). Two products:
//   scores  S[row, j]  = sum over columns c of rows[row, c] * streamed[j, c]
//   values  O[row, c] += sum over j of W[row, j] * streamed[j, c]
// What comes out of the first, rounded, is an operand of the second as it stands in the registers.
#pragma once

#include "gpu_kernels/kernels/async_copy.cuh"
#include "gpu_kernels/kernels/attention_sequences.cuh"
#include "gpu_kernels/kernels/mma.cuh"
#include "gpu_kernels/kernels/numbers.cuh"

namespace hearth::HEARTH_GPU {

constexpr int kMmaWarps = 4, kMmaThreads = 32 * kMmaWarps;
constexpr float kLog2e = 1.44269504f, kLn2 = 0.693147181f;  // softmax takes powers of two

/// Sums of products as mma leaves them: of each 16 x 8 part a thread holds two neighbours in row
/// lane / 4, then two eight rows below.
template <int kParts, int kColumns>
using Sums = float[kParts][kColumns / 8][4];
/// Such sums, rounded, as operands a: of each 16 x 16 part.
template <int kParts, int kColumns>
using Weights = uint32_t[kParts][kColumns / 16][4];

template <int kParts, int N>
__device__ inline void clear_sums(float (&x)[kParts][N][4]) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) x[part][n][i] = 0.0f;
    }
  }
}

/// The row, within a part, of element i of a thread's four; and the column, within eight.
__device__ inline int sum_row(int i) { return static_cast<int>(threadIdx.x) % 32 / 4 + i / 2 * 8; }
__device__ inline int sum_column(int i) { return static_cast<int>(threadIdx.x) % 4 * 2 + i % 2; }

template <int kParts, int N>
__device__ inline void round_sums(const float (&x)[kParts][N][4], uint32_t (&w)[kParts][N / 2][4]) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      w[part][n / 2][n % 2 * 2] = pack_bf16(x[part][n][0], x[part][n][1]);
      w[part][n / 2][n % 2 * 2 + 1] = pack_bf16(x[part][n][2], x[part][n][3]);
    }
  }
}

/// A tile in shared memory, rows of D elements (zeros past head_dim), chunks as chunk_place says.
/// Reads fragments of it; `row` is a multiple of 16, `step` and `part` count sixteens of columns. What
/// does not change from read to read is found once, and few terms are left: registers are scarce.
template <int D>
class HeadTile {
 public:
  static constexpr int kChunks = D / 8;  // of a row
  __device__ HeadTile() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int turn = lane & 7, low = lane >> 3 & 1, high = lane >> 4;
    rows_by_low_ = (low * 8 + turn) * kChunks;
    rows_by_high_ = (high * 8 + turn) * kChunks;
    chunk_by_low_ = low ^ turn;
    chunk_by_high_ = high ^ turn;
  }

  /// a: sixteen rows, sixteen columns.
  __device__ void rows_as_a(uint32_t (&x)[4], const uint4* tile, int row, int step) const {
    ldmatrix_x4(x, tile + row * kChunks + rows_by_low_ + place(chunk_by_high_, step));
  }
  /// Two b, whose columns are rows [row, row + 8) and the next eight: x[0], x[1] and x[2], x[3].
  __device__ void rows_as_columns(uint32_t (&x)[4], const uint4* tile, int row, int step) const {
    ldmatrix_x4(x, tile + row * kChunks + rows_by_high_ + place(chunk_by_low_, step));
  }
  /// Two b, whose rows are rows and whose columns are columns.
  __device__ void rows_as_rows(uint32_t (&x)[4], const uint4* tile, int row, int part) const {
    ldmatrix_x4_trans(x, tile + row * kChunks + rows_by_low_ + place(chunk_by_high_, part));
  }

 private:
  /// Chunk 2 step, or the next, of a row: `chunk` is the place of 0, or of 1.
  __device__ static int place(int chunk, int step) {
    return (chunk ^ (2 * step & 7)) + (2 * step & ~7);
  }
  int rows_by_low_, rows_by_high_, chunk_by_low_, chunk_by_high_;
};

template <int kParts, int N>
__device__ inline void add_pair(float (&s)[kParts][N][4], int n, const uint32_t (&a)[kParts][4],
                                const uint32_t (&b)[4]) {
  const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    mma_m16n8k16(s[part][n], a[part], left);
    mma_m16n8k16(s[part][n + 1], a[part], right);
  }
}

/// S = rows (from `row` on) times the transposed streamed rows.
template <int D, int kParts, int N>
__device__ inline void make_scores(const HeadTile<D>& tile, const uint4* rows, int row,
                                   const uint4* streamed, float (&s)[kParts][N][4]) {
  clear_sums(s);
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    uint32_t a[kParts][4];
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      tile.rows_as_a(a[part], rows, row + 16 * part, step);
    }
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t b[4];
      tile.rows_as_columns(b, streamed, 8 * n, step);
      add_pair(s, n, a, b);
    }
  }
}

/// O += W times the streamed rows, of their columns from sixteen times `first` on.
template <int D, int kParts, int kSteps, int N>
__device__ inline void add_values(const HeadTile<D>& tile, const uint32_t (&w)[kParts][kSteps][4],
                                  const uint4* streamed, int first, float (&o)[kParts][N][4]) {
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    uint32_t a[kParts][4];
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int i = 0; i < 4; ++i) a[part][i] = w[part][step][i];
    }
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t b[4];
      tile.rows_as_rows(b, streamed, 16 * step, first + n / 2);
      add_pair(o, n, a, b);
    }
  }
}

/// Starts copying kRows rows of a head, from element (row, column) on, to a tile; zeros beyond `rows`
/// and `columns`.
template <int D, int kRows>
__device__ inline void load_heads(uint4* tile, const RoundedHeads& from, int64_t row,
                                  int64_t column, int rows, int columns) {
  constexpr int kChunks = D / 8, kRowsBetween = kMmaThreads / kChunks;
  static_assert(kMmaThreads % kChunks == 0 && kRows % kRowsBetween == 0);
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const int mine = static_cast<int>(threadIdx.x) / kChunks;
  const uint16_t* source = from.data + (row + mine) * from.stride + column + chunk * 8;
  const int there = chunk * 8 < columns ? rows - mine : 0;
#pragma unroll
  for (int r = 0; r < kRows; r += kRowsBetween) {
    copy_async16(tile + chunk_place<kChunks>(mine + r, chunk), source, r < there ? 16 : 0);
    source += kRowsBetween * from.stride;
  }
}

/// Of scores: of queries from `query` on and keys from `key` on those that are not seen become
/// -infinity. kKeysAsRows: a row is a key, a column a query; else the other way round.
template <bool kKeysAsRows, int kParts, int N>
__device__ inline void mask_scores(const AttentionSequence& sequence, int query, int key,
                                   int window, float (&s)[kParts][N][4]) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = 16 * part + sum_row(i), column = 8 * n + sum_column(i);
        const int last = sequence.last_key(query + (kKeysAsRows ? column : row));
        const bool seen = AttentionSequence::sees(last, key + (kKeysAsRows ? row : column), window);
        s[part][n][i] = seen ? s[part][n][i] : -INFINITY;
      }
    }
  }
}

/// Writes a warp's O, times its row's factor, to rows of `to` from `row` on: `rows` of them are
/// there, and columns of the head below `columns`. O begins at column `first` of the head.
template <int N, class Factor>
__device__ inline void store_sums(const HeadMatrix& to, int64_t row, int64_t column, int rows,
                                  int columns, int first, const Factor& factor,
                                  const float (&o)[N][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = sum_row(2 * half);
    if (r >= rows) continue;
    float* const target = head_row(to, row + r, column);
    const float f = factor(half);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const int c = first + 8 * n + sum_column(0);
      if (c >= columns) continue;  // columns are a multiple of 8
      const float2 pair = {f * o[n][2 * half], f * o[n][2 * half + 1]};
      if (to.vectors) {
        store_wide(target + c, pair);
      } else {
        target[c] = pair.x;
        target[c + 1] = pair.y;
      }
    }
  }
}

}  // namespace hearth::HEARTH_GPU
