// Gradients of attention without sums that depend on the order of blocks: with P = softmax(scale
// q k^T) made again from log_sum and delta = <dout, out> a query,
//   dS = P * (dout v^T - delta), dq = scale dS k, dk = scale dS^T q, dv = P^T dout.
// One pass gives delta; one owns rows of queries and gives dq; one owns rows of keys and gives dk and
// dv, adding over the heads of its group and the queries in their order.
#include "gpu_kernels/kernels/attention_tiles.cuh"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int kDeltaThreads = 256;

/// A warp a (row, head).
__global__ void __launch_bounds__(kDeltaThreads)
    attention_delta_kernel(const __grid_constant__ AttentionArguments a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t item =
      (int64_t{blockIdx.x} * kDeltaThreads + static_cast<int64_t>(threadIdx.x)) / 32;
  const int64_t row = item / a.heads, head = item % a.heads;
  if (row >= a.query_rows) return;  // the whole warp
  const float* dout = head_row(a.dout, row, head * a.head_dim);
  const float* out = head_row(a.out, row, head * a.head_dim);
  float sum = 0.0f;
  for (int c = lane; c < a.head_dim; c += 32) sum = fmaf(dout[c], out[c], sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) a.delta[item] = sum;
}

template <int D, int R>
constexpr int attention_dq_shared() {
  using Tile = AttentionTile<D, R>;
  return static_cast<int>(sizeof(float)) *
         (2 * Tile::kResidentFloats + Tile::kWeightFloats + kSlots * kSlotFloats);
}

/// dq of up to kRows queries of one sequence in one head.
template <int D, int R>
class QueryGradientTile {
 public:
  using Tile = AttentionTile<D, R>;
  __device__ QueryGradientTile(const AttentionArguments& a, const AttentionSequence& sequence,
                               int head, int first_query, int queries, float* shared)
      : a_(a),
        s_(sequence),
        head_(head),
        first_query_(first_query),
        queries_(queries),
        q_(shared),
        dout_(q_ + Tile::kResidentFloats),
        weights_(dout_ + Tile::kResidentFloats),
        slots_(weights_ + Tile::kWeightFloats) {}

  __device__ void run() {
    const int d = a_.head_dim;
    const int row = s_.query_begin + first_query_;
    const int begin = s_.first_key(first_query_, a_.window) / kStreamed * kStreamed;
    const int end = s_.last_key(first_query_ + queries_ - 1) + 1;
    const int blocks = (end - begin + kStreamed - 1) / kStreamed;
    const int column = head_ / (a_.heads / a_.kv_heads) * d;
    const int score_pieces = (d + kPieceColumns - 1) / kPieceColumns;
    const int pieces = 2 * score_pieces + Tile::kValuePieces;
    // Of each block of keys: k for the scores, v for dout v^T, k for dq.
    const auto load = [&](int n, float* slot) {
      const int key = begin + n / pieces * kStreamed, part = n % pieces;
      if (part < 2 * score_pieces) {
        const HeadMatrix& from = part < score_pieces ? a_.k : a_.v;
        const int c = part % score_pieces * kPieceColumns;
        load_tile<kStreamed, kPieceColumns>(slot, kPiecePitch, from,
                                            head_row(from, s_.key_begin + key, column + c),
                                            end - key, d - c);
      } else {
        const int j = key + (part - 2 * score_pieces) * Tile::kPieceRows;
        load_tile<Tile::kPieceRows, D>(slot, D, a_.k, head_row(a_.k, s_.key_begin + j, column),
                                       end - j, d);
      }
    };
    load_tile<Tile::kRows, D>(q_, Tile::kPitch, a_.q, head_row(a_.q, row, int64_t{head_} * d),
                              queries_, d);
    load_tile<Tile::kRows, D>(dout_, Tile::kPitch, a_.dout,
                              head_row(a_.dout, row, int64_t{head_} * d), queries_, d);
    PieceRing ring(slots_, blocks * pieces, load);
    load_row_values(row);

    float dq[R][Tile::kColumns];
    set_zero(dq);
    for (int block = 0; block < blocks; ++block) {
      float s[R][4], dp[R][4];
      set_zero(s);
      set_zero(dp);
      for (int p = 0; p < score_pieces; ++p) {
        add_scores<R>(thread_, q_ + p * kPieceColumns, Tile::kPitch, ring.next(load), s);
      }
      for (int p = 0; p < score_pieces; ++p) {
        add_scores<R>(thread_, dout_ + p * kPieceColumns, Tile::kPitch, ring.next(load), dp);
      }
      store_score_gradients(begin + block * kStreamed, s, dp);
      for (int p = 0; p < Tile::kValuePieces; ++p) {
        const float* piece = ring.next(load);
        add_values<D, R>(thread_, weights_ + p * Tile::kPieceRows, piece, dq);
      }
    }
    store_rows<D, R>(
        thread_, head_row(a_.dq, row, int64_t{head_} * d), a_.dq.stride, queries_, d,
        [&](int) { return a_.scale; }, dq);
  }

 private:
  __device__ void load_row_values(int row) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
      const bool valid = thread_.row(i) < queries_;
      const int64_t at = row + thread_.row(i);
      log_sum_[i] = valid ? *head_row(a_.log_sum, at, head_) : 0.0f;
      delta_[i] = valid ? a_.delta[at * a_.heads + head_] : 0.0f;
    }
  }

  __device__ void store_score_gradients(int key, const float (&s)[R][4], const float (&dp)[R][4]) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
      const int last = s_.last_key(first_query_ + thread_.row(i));
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = thread_.lane + kAttentionLanes * j;
        const bool seen =
            AttentionSequence::sees(last, key + column, a_.window) && thread_.row(i) < queries_;
        const float p = seen ? expf(s[i][j] * a_.scale - log_sum_[i]) : 0.0f;
        weights_[thread_.row(i) * kWeightPitch + column] = p * (dp[i][j] - delta_[i]);
      }
    }
  }

  const AttentionArguments& a_;
  const AttentionSequence& s_;
  const AttentionThread thread_;
  int head_, first_query_, queries_;
  float *q_, *dout_, *weights_, *slots_;
  float log_sum_[R], delta_[R];
};

/// Grid as of the forward.
template <int D, int R>
__global__ void __launch_bounds__(kAttentionThreads, 2)
    attention_dq_kernel(const __grid_constant__ AttentionArguments a) {
  float* shared = shared_memory<float>();
  constexpr int kRows = AttentionTile<D, R>::kRows;
  const int tile = static_cast<int>((gridDim.x - 1 - blockIdx.x) / static_cast<unsigned>(a.heads));
  const int head = static_cast<int>(blockIdx.x) % a.heads;
  const int begin = tile * kRows, end = begin + kRows;
  for_sequences(a, a.query_offsets, begin, end,
                [&](const AttentionSequence& s, int first, int count) {
                  QueryGradientTile<D, R>(a, s, head, first, count, shared).run();
                });
}

template <int D, int R>
void query_gradients(void* stream, const AttentionArguments& a) {
  static_assert(attention_dq_shared<D, R>() <= kMostShared);
  const int64_t blocks = a.heads * parts_over(a.query_rows, AttentionTile<D, R>::kRows);
  launch(attention_dq_kernel<D, R>, blocks, kAttentionThreads, attention_dq_shared<D, R>(), stream,
         a);
}

}  // namespace

void attention_delta_on(void* stream, const AttentionArguments& a) {
  if (a.query_rows == 0) return;
  constexpr int kWarps = kDeltaThreads / 32;
  launch(attention_delta_kernel, parts_over(int64_t{a.query_rows} * a.heads, kWarps), kDeltaThreads,
         0, stream, a);
}

void attention_dq_on(void* stream, const AttentionArguments& a) {
  if (a.query_rows == 0) return;
  if (a.head_dim <= 32) return query_gradients<32, 8>(stream, a);
  if (a.head_dim <= 64) return query_gradients<64, 8>(stream, a);
  if (a.head_dim <= 128) return query_gradients<128, 4>(stream, a);
  query_gradients<256, 2>(stream, a);
}

}  // namespace hearth::HEARTH_GPU
