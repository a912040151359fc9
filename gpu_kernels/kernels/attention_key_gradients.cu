// The pass of attention's backward that owns rows of keys: dk and dv. Roles are those of the pass
// for dq with queries and keys exchanged: scores are [key, query].
#include "gpu_kernels/kernels/attention_tiles.cuh"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

template <int D, int R>
constexpr int attention_dkv_shared() {
  using Tile = AttentionTile<D, R>;
  return static_cast<int>(sizeof(float)) *
         (2 * Tile::kResidentFloats + 2 * Tile::kWeightFloats + kSlots * kSlotFloats);
}

/// dk and dv of up to kRows keys of one sequence in one head of keys.
template <int D, int R>
class KeyGradientTile {
 public:
  using Tile = AttentionTile<D, R>;
  __device__ KeyGradientTile(const AttentionArguments& a, const AttentionSequence& sequence,
                             int kv_head, int first_key, int keys, float* shared)
      : a_(a),
        s_(sequence),
        kv_head_(kv_head),
        first_key_(first_key),
        keys_(keys),
        k_(shared),
        v_(k_ + Tile::kResidentFloats),
        p_(v_ + Tile::kResidentFloats),
        ds_(p_ + Tile::kWeightFloats),
        slots_(ds_ + Tile::kWeightFloats) {}

  __device__ void run() {
    const int d = a_.head_dim, group = a_.heads / a_.kv_heads;
    // The queries that see a key of the tile: from the first key's own position on, and within the
    // window of the last one.
    const int shift = s_.keys - s_.queries;
    const int begin = max(0, first_key_ - shift) / kStreamed * kStreamed;
    const int end =
        a_.window > 0 ? min(s_.queries, first_key_ + keys_ - 1 - shift + a_.window) : s_.queries;
    const int blocks = max(0, (end - begin + kStreamed - 1) / kStreamed);
    const int score_pieces = (d + kPieceColumns - 1) / kPieceColumns;
    const int pieces = 2 * (score_pieces + Tile::kValuePieces);
    // Of each head and block of queries: q for the scores, dout for v dout^T, dout for dv, q for dk.
    const auto load = [&](int n, float* slot) {
      const int tile = n / pieces, part = n % pieces;
      const int query = begin + tile % blocks * kStreamed;
      const int64_t column = int64_t{kv_head_ * group + tile / blocks} * d;
      if (part < 2 * score_pieces) {
        const HeadMatrix& from = part < score_pieces ? a_.q : a_.dout;
        const int c = part % score_pieces * kPieceColumns;
        load_tile<kStreamed, kPieceColumns>(slot, kPiecePitch, from,
                                            head_row(from, s_.query_begin + query, column + c),
                                            end - query, d - c);
      } else {
        const int value = part - 2 * score_pieces;
        const HeadMatrix& from = value < Tile::kValuePieces ? a_.dout : a_.q;
        const int i = query + value % Tile::kValuePieces * Tile::kPieceRows;
        load_tile<Tile::kPieceRows, D>(slot, D, from, head_row(from, s_.query_begin + i, column),
                                       end - i, d);
      }
    };
    const int row = s_.key_begin + first_key_;
    const int64_t kv_column = int64_t{kv_head_} * d;
    load_tile<Tile::kRows, D>(k_, Tile::kPitch, a_.k, head_row(a_.k, row, kv_column), keys_, d);
    load_tile<Tile::kRows, D>(v_, Tile::kPitch, a_.v, head_row(a_.v, row, kv_column), keys_, d);
    PieceRing ring(slots_, group * blocks * pieces, load);

    float dk[R][Tile::kColumns], dv[R][Tile::kColumns];
    set_zero(dk);
    set_zero(dv);
    for (int tile = 0; tile < group * blocks; ++tile) {
      float s[R][4], dp[R][4];
      set_zero(s);
      set_zero(dp);
      for (int p = 0; p < score_pieces; ++p) {
        add_scores<R>(thread_, k_ + p * kPieceColumns, Tile::kPitch, ring.next(load), s);
      }
      for (int p = 0; p < score_pieces; ++p) {
        add_scores<R>(thread_, v_ + p * kPieceColumns, Tile::kPitch, ring.next(load), dp);
      }
      store_weights(kv_head_ * group + tile / blocks, begin + tile % blocks * kStreamed, end, s,
                    dp);
      for (int p = 0; p < Tile::kValuePieces; ++p) {
        const float* piece = ring.next(load);
        add_values<D, R>(thread_, p_ + p * Tile::kPieceRows, piece, dv);
      }
      for (int p = 0; p < Tile::kValuePieces; ++p) {
        const float* piece = ring.next(load);
        add_values<D, R>(thread_, ds_ + p * Tile::kPieceRows, piece, dk);
      }
    }
    wait_copies<0>();  // of a tile that no query sees
    store_rows<D, R>(
        thread_, head_row(a_.dk, row, kv_column), a_.dk.stride, keys_, d,
        [&](int) { return a_.scale; }, dk);
    store_rows<D, R>(
        thread_, head_row(a_.dv, row, kv_column), a_.dv.stride, keys_, d, [](int) { return 1.0f; },
        dv);
  }

 private:
  __device__ void store_weights(int head, int query, int end, const float (&s)[R][4],
                                const float (&dp)[R][4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = thread_.lane + kAttentionLanes * j;
      const bool valid = query + column < end;
      const int64_t at = s_.query_begin + query + column;
      const float log_sum = valid ? *head_row(a_.log_sum, at, head) : 0.0f;
      const float delta = valid ? a_.delta[at * a_.heads + head] : 0.0f;
      const int last = s_.last_key(query + column);
#pragma unroll
      for (int i = 0; i < R; ++i) {
        const bool seen =
            valid && AttentionSequence::sees(last, first_key_ + thread_.row(i), a_.window);
        const float p = seen ? expf(s[i][j] * a_.scale - log_sum) : 0.0f;
        p_[thread_.row(i) * kWeightPitch + column] = p;
        ds_[thread_.row(i) * kWeightPitch + column] = p * (dp[i][j] - delta);
      }
    }
  }

  const AttentionArguments& a_;
  const AttentionSequence& s_;
  const AttentionThread thread_;
  int kv_head_, first_key_, keys_;
  float *k_, *v_, *p_, *ds_, *slots_;
};

/// Grid: for each tile of kRows key rows, from the first, which most queries see, all heads of keys.
template <int D, int R>
__global__ void __launch_bounds__(kAttentionThreads, 2)
    attention_dkv_kernel(const __grid_constant__ AttentionArguments a) {
  float* shared = shared_memory<float>();
  constexpr int kRows = AttentionTile<D, R>::kRows;
  const int kv_head = static_cast<int>(blockIdx.x) % a.kv_heads;
  const int begin = static_cast<int>(blockIdx.x) / a.kv_heads * kRows, end = begin + kRows;
  for_sequences(a, a.key_offsets, begin, end,
                [&](const AttentionSequence& s, int first, int count) {
                  KeyGradientTile<D, R>(a, s, kv_head, first, count, shared).run();
                });
}

template <int D, int R>
void key_gradients(void* stream, const AttentionArguments& a) {
  static_assert(attention_dkv_shared<D, R>() <= kMostShared);
  const int64_t blocks = a.kv_heads * parts_over(a.key_rows, AttentionTile<D, R>::kRows);
  launch(attention_dkv_kernel<D, R>, blocks, kAttentionThreads, attention_dkv_shared<D, R>(),
         stream, a);
}

}  // namespace

void attention_dkv_on(void* stream, const AttentionArguments& a) {
  if (a.key_rows == 0) return;
  if (a.head_dim <= 32) return key_gradients<32, 8>(stream, a);
  if (a.head_dim <= 64) return key_gradients<64, 8>(stream, a);
  if (a.head_dim <= 128) return key_gradients<128, 4>(stream, a);
  key_gradients<256, 2>(stream, a);
}

}  // namespace hearth::HEARTH_GPU
