// Causal attention over packed sequences: softmax over blocks of keys as they come, with sums
// relative to the largest score so far (Dao et al., FlashAttention, 2022, algorithm 1).
#include "gpu_kernels/kernels/attention_tiles.cuh"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

template <int D, int R>
constexpr int attention_forward_shared() {
  using Tile = AttentionTile<D, R>;
  return static_cast<int>(sizeof(float)) *
         (Tile::kResidentFloats + Tile::kWeightFloats + kSlots * kSlotFloats);
}

/// Up to kRows queries of one sequence in one head.
template <int D, int R>
class ForwardTile {
 public:
  using Tile = AttentionTile<D, R>;
  __device__ ForwardTile(const AttentionArguments& a, const AttentionSequence& sequence, int head,
                         int first_query, int queries, float* shared)
      : a_(a),
        s_(sequence),
        head_(head),
        first_query_(first_query),
        queries_(queries),
        q_(shared),
        weights_(q_ + Tile::kResidentFloats),
        slots_(weights_ + Tile::kWeightFloats) {}

  __device__ void run() {
    const int d = a_.head_dim;
    const int row = s_.query_begin + first_query_;
    const int begin = s_.first_key(first_query_, a_.window) / kStreamed * kStreamed;
    const int end = s_.last_key(first_query_ + queries_ - 1) + 1;
    const int blocks = (end - begin + kStreamed - 1) / kStreamed;
    const int column = head_ / (a_.heads / a_.kv_heads) * d;
    const int score_pieces = (d + kPieceColumns - 1) / kPieceColumns;
    const int pieces = score_pieces + Tile::kValuePieces;
    const auto load = [&](int n, float* slot) {
      const int key = begin + n / pieces * kStreamed, part = n % pieces;
      if (part < score_pieces) {
        const int c = part * kPieceColumns;
        load_tile<kStreamed, kPieceColumns>(slot, kPiecePitch, a_.k,
                                            head_row(a_.k, s_.key_begin + key, column + c),
                                            end - key, d - c);
      } else {
        const int j = key + (part - score_pieces) * Tile::kPieceRows;
        load_tile<Tile::kPieceRows, D>(slot, D, a_.v, head_row(a_.v, s_.key_begin + j, column),
                                       end - j, d);
      }
    };
    load_tile<Tile::kRows, D>(q_, Tile::kPitch, a_.q, head_row(a_.q, row, int64_t{head_} * d),
                              queries_, d);
    PieceRing ring(slots_, blocks * pieces, load);

    set_zero(o_);
#pragma unroll
    for (int i = 0; i < R; ++i) {
      largest_[i] = kLowestScore;
      sum_[i] = 0.0f;
    }
    for (int block = 0; block < blocks; ++block) {
      float s[R][4];
      set_zero(s);
      for (int p = 0; p < score_pieces; ++p) {
        add_scores<R>(thread_, q_ + p * kPieceColumns, Tile::kPitch, ring.next(load), s);
      }
      softmax(begin + block * kStreamed, s);
      for (int p = 0; p < Tile::kValuePieces; ++p) {
        const float* piece = ring.next(load);
        add_values<D, R>(thread_, weights_ + p * Tile::kPieceRows, piece, o_);
      }
    }
    store(row);
  }

 private:
  /// Scores of keys [key, key + 64) become weights in shared memory; what was summed up is brought
  /// to the new maximum. A lane sums its own columns; the lanes of a row are added at the end.
  __device__ void softmax(int key, float (&s)[R][4]) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
      const int last = s_.last_key(first_query_ + thread_.row(i));
      float top = largest_[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = key + thread_.lane + kAttentionLanes * j;
        // Rows past the tile's end have seen enough: their keys may be past the sequence's end.
        const bool seen = AttentionSequence::sees(last, at, a_.window) && thread_.row(i) < queries_;
        s[i][j] = seen ? s[i][j] * a_.scale : -INFINITY;
        top = fmaxf(top, s[i][j]);
      }
      top = largest_of_row(top);
      const float correction = expf(largest_[i] - top);
      largest_[i] = top;
      sum_[i] *= correction;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = expf(s[i][j] - top);
        sum_[i] += weight;
        weights_[thread_.row(i) * kWeightPitch + thread_.lane + kAttentionLanes * j] = weight;
      }
#pragma unroll
      for (int c = 0; c < Tile::kColumns; ++c) o_[i][c] *= correction;
    }
  }

  __device__ void store(int row) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
      sum_[i] = sum_of_row(sum_[i]);
      if (thread_.lane == 0 && thread_.row(i) < queries_) {
        *head_row(a_.log_sum, row + thread_.row(i), head_) = largest_[i] + logf(sum_[i]);
      }
    }
    store_rows<D, R>(
        thread_, head_row(a_.out, row, int64_t{head_} * a_.head_dim), a_.out.stride, queries_,
        a_.head_dim, [&](int i) { return 1.0f / sum_[i]; }, o_);
  }

  const AttentionArguments& a_;
  const AttentionSequence& s_;
  const AttentionThread thread_;
  int head_, first_query_, queries_;
  float *q_, *weights_, *slots_;
  float o_[R][Tile::kColumns];
  float largest_[R], sum_[R];
};

/// Grid: for each tile of kRows query rows, from the last, which sees most keys, to the first, all heads. A tile
/// that several sequences share goes through them in order.
template <int D, int R>
__global__ void __launch_bounds__(kAttentionThreads, 2)
    attention_forward_kernel(const __grid_constant__ AttentionArguments a) {
  float* shared = shared_memory<float>();
  constexpr int kRows = AttentionTile<D, R>::kRows;
  const int tile = static_cast<int>((gridDim.x - 1 - blockIdx.x) / static_cast<unsigned>(a.heads));
  const int head = static_cast<int>(blockIdx.x) % a.heads;
  const int begin = tile * kRows, end = begin + kRows;
  for_sequences(a, a.query_offsets, begin, end,
                [&](const AttentionSequence& s, int first, int count) {
                  ForwardTile<D, R>(a, s, head, first, count, shared).run();
                });
}

template <int D, int R>
void forward(void* stream, const AttentionArguments& a) {
  static_assert(attention_forward_shared<D, R>() <= kMostShared);
  const int64_t blocks = a.heads * parts_over(a.query_rows, AttentionTile<D, R>::kRows);
  launch(attention_forward_kernel<D, R>, blocks, kAttentionThreads,
         attention_forward_shared<D, R>(), stream, a);
}

}  // namespace

void attention_forward_on(void* stream, const AttentionArguments& a) {
  if (a.query_rows == 0) return;
  if (a.head_dim <= 32) return forward<32, 8>(stream, a);
  if (a.head_dim <= 64) return forward<64, 8>(stream, a);
  if (a.head_dim <= 128) return forward<128, 8>(stream, a);
  forward<256, 4>(stream, a);
}

}  // namespace hearth::HEARTH_GPU
