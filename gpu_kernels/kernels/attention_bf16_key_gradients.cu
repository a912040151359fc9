// The pass of attention's backward for dk and dv on the tensor cores. Roles are those of the pass for
// dq with queries and keys exchanged: scores are [key, query].
#include "gpu_kernels/kernels/attention_bf16.cuh"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int kKeySlots = 2;

/// Sizes: D the padded head, kParts sixteens of keys a warp, kQueries queries in a block of queries.
/// kSplit warps share their keys, each with its part of the columns of dk and dv, where the sums of
/// all columns would not fit the registers.
template <int D, int kParts, int kQueries, int kSplit>
struct KeySizes {
  static constexpr int kRows = kMmaWarps / kSplit * 16 * kParts;
  static constexpr int kColumns = D / kSplit;
  // A slot: rows of q, rows of dout, log_sum and delta of the queries.
  static constexpr int kTileChunks = kQueries * D / 8;
  static constexpr int kSlotChunks = 2 * kTileChunks + 2 * kQueries / 4;
  static constexpr int kSharedBytes = 16 * (2 * kRows * D / 8 + kKeySlots * kSlotChunks);
  static_assert(kSharedBytes <= kMostShared && 2 * kQueries <= kMmaThreads);
};

/// dk and dv of up to kRows keys of one sequence in one head of keys.
template <int D, int kParts, int kQueries, int kSplit>
class KeyGradientTile {
 public:
  using Sizes = KeySizes<D, kParts, kQueries, kSplit>;
  __device__ KeyGradientTile(const AttentionArguments& a, const AttentionSequence& sequence,
                             int kv_head, int first_key, int keys, uint4* shared)
      : a_(a),
        s_(sequence),
        kv_head_(kv_head),
        first_key_(first_key),
        keys_(keys),
        warp_row_(static_cast<int>(threadIdx.x) / 32 / kSplit * 16 * kParts),
        column_(static_cast<int>(threadIdx.x) / 32 % kSplit * Sizes::kColumns),
        k_(shared),
        v_(k_ + Sizes::kRows * D / 8),
        slots_(v_ + Sizes::kRows * D / 8) {}

  __device__ void run() {
    const int d = a_.head_dim, group = a_.heads / a_.kv_heads;
    // The queries that see a key of the tile: from the first key's own position on, and within the
    // window of the last one.
    const int shift = s_.keys - s_.queries;
    const int begin = max(0, first_key_ - shift) / kQueries * kQueries;
    const int end =
        a_.window > 0 ? min(s_.queries, first_key_ + keys_ - 1 - shift + a_.window) : s_.queries;
    const int blocks = max(0, (end - begin + kQueries - 1) / kQueries);
    const int64_t row = s_.key_begin + first_key_, column = int64_t{kv_head_} * d;
    const auto next_query = [&](int query) {  // the heads of the group one after the other
      return query + kQueries < end ? query + kQueries : begin;
    };
    int head_to_load = kv_head_ * group, query_to_load = begin;
    const auto load = [&](int, uint4* slot) {
      load_queries(head_to_load, query_to_load, end, slot);
      query_to_load = next_query(query_to_load);
      if (query_to_load == begin) ++head_to_load;
    };
    load_heads<D, Sizes::kRows>(k_, a_.k16, row, column, keys_, d);
    load_heads<D, Sizes::kRows>(v_, a_.v16, row, column, keys_, d);
    CopyRing<uint4, kKeySlots, Sizes::kSlotChunks> ring(slots_, group * blocks, load);

    Sums<kParts, Sizes::kColumns> dk, dv;
    clear_sums(dk);
    clear_sums(dv);
    int query = begin;
    for (int n = group * blocks; n > 0; --n, query = next_query(query)) {
      const uint4* const q = ring.next(load);
      const uint4* const dout = q + Sizes::kTileChunks;
      const int key = first_key_ + warp_row_;
      const Seen seen =
          warp_row_ >= keys_ ? Seen::none : s_.seen(query, kQueries, key, 16 * kParts, a_.window);
      if (seen == Seen::none) continue;
      Sums<kParts, kQueries> s, dp;
      make_scores<D>(tile_, k_, warp_row_, q, s);
      make_scores<D>(tile_, v_, warp_row_, dout, dp);
      if (seen == Seen::some) mask_scores<true>(s_, query, key, a_.window, s);
      make_weights(reinterpret_cast<const float*>(dout + Sizes::kTileChunks), s, dp);
      Weights<kParts, kQueries> weights;
      round_sums(s, weights);
      add_values<D>(tile_, weights, dout, column_ / 16, dv);
      round_sums(dp, weights);
      add_values<D>(tile_, weights, q, column_ / 16, dk);
    }
    wait_copies<0>();  // of a tile that no query sees
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int first = warp_row_ + 16 * part;
      store_sums(
          a_.dk, row + first, column, keys_ - first, d, column_, [&](int) { return a_.scale; },
          dk[part]);
      store_sums(
          a_.dv, row + first, column, keys_ - first, d, column_, [](int) { return 1.0f; },
          dv[part]);
    }
  }

 private:
  __device__ void load_queries(int head, int query, int end, uint4* slot) const {
    const int64_t row = s_.query_begin + query, column = int64_t{head} * a_.head_dim;
    load_heads<D, kQueries>(slot, a_.q16, row, column, end - query, a_.head_dim);
    load_heads<D, kQueries>(slot + Sizes::kTileChunks, a_.dout16, row, column, end - query,
                            a_.head_dim);
    const int i = static_cast<int>(threadIdx.x);
    if (i >= 2 * kQueries) return;
    auto* const values = reinterpret_cast<float*>(slot + 2 * Sizes::kTileChunks);
    const bool valid = query + i % kQueries < end;
    const int64_t at = valid ? row + i % kQueries : 0;
    copy_async4(values + i,
                i < kQueries ? head_row(a_.log_sum, at, head) : a_.delta + at * a_.heads + head,
                valid);
  }

  /// Scores become weights, and dp, the weights' gradients, those of scores. `values`: log_sum and
  /// delta of the queries; zero of those that are not there, whose rows are zeros too.
  __device__ void make_weights(const float* values, Sums<kParts, kQueries>& s,
                               Sums<kParts, kQueries>& dp) const {
    const float scale = a_.scale * kLog2e;
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
      const auto log_sum = load_wide<float2>(values + 8 * n + sum_column(0));
      const auto delta = load_wide<float2>(values + kQueries + 8 * n + sum_column(0));
      const float subtracted[2] = {log_sum.x * kLog2e, log_sum.y * kLog2e};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          const float p = exp2_flushed(fmaf(s[part][n][i], scale, -subtracted[i % 2]));
          s[part][n][i] = p;
          dp[part][n][i] = p * (dp[part][n][i] - (i % 2 == 0 ? delta.x : delta.y));
        }
      }
    }
  }

  const AttentionArguments& a_;
  const AttentionSequence& s_;
  const HeadTile<D> tile_;
  int kv_head_, first_key_, keys_, warp_row_, column_;
  uint4 *k_, *v_, *slots_;
};

/// Grid: for each tile of kRows key rows, from the first, which most queries see, all heads of keys.
template <int D, int kParts, int kQueries, int kSplit>
__global__ void __launch_bounds__(kMmaThreads, 2)
    attention_dkv_bf16(const __grid_constant__ AttentionArguments a) {
  uint4* const shared = shared_memory<uint4>();
  constexpr int kRows = KeySizes<D, kParts, kQueries, kSplit>::kRows;
  const int tile = static_cast<int>(blockIdx.x) / a.kv_heads;
  const int kv_head = static_cast<int>(blockIdx.x) % a.kv_heads;
  for_sequences(
      a, a.key_offsets, tile * kRows, (tile + 1) * kRows,
      [&](const AttentionSequence& s, int first, int count) {
        KeyGradientTile<D, kParts, kQueries, kSplit>(a, s, kv_head, first, count, shared).run();
      });
}

template <int D, int kParts, int kQueries, int kSplit>
void key_gradients(void* stream, const AttentionArguments& a) {
  using Sizes = KeySizes<D, kParts, kQueries, kSplit>;
  launch(attention_dkv_bf16<D, kParts, kQueries, kSplit>,
         a.kv_heads * parts_over(a.key_rows, Sizes::kRows), kMmaThreads, Sizes::kSharedBytes,
         stream, a);
}

}  // namespace

void attention_dkv_bf16_on(void* stream, const AttentionArguments& a) {
  if (a.key_rows == 0) return;
  if (a.head_dim <= 64) return key_gradients<64, 2, 32, 1>(stream, a);
  if (a.head_dim <= 128) return key_gradients<128, 1, 64, 1>(stream, a);
  key_gradients<256, 1, 32, 2>(stream, a);
}

}  // namespace hearth::HEARTH_GPU
