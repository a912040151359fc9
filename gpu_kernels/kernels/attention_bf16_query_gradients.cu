// The passes of attention's backward for delta and dq on the tensor cores; the scheme is that of
// attention_query_gradients.cu. Softmax's weights and their gradients are rounded where they are
// operands.
#include "gpu_kernels/kernels/attention_bf16.cuh"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int kDeltaThreads = 256;

/// A warp a (row, head). dout is the rounded one, so that the gradients of a query's scores add up to
/// zero.
__global__ void __launch_bounds__(kDeltaThreads)
    attention_delta_bf16(const __grid_constant__ AttentionArguments a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t item =
      (int64_t{blockIdx.x} * kDeltaThreads + static_cast<int64_t>(threadIdx.x)) / 32;
  const int64_t row = item / a.heads, head = item % a.heads;
  if (row >= a.query_rows) return;  // the whole warp
  const uint16_t* dout = a.dout16.data + row * a.dout16.stride + head * a.head_dim;
  const float* out = head_row(a.out, row, head * a.head_dim);
  float sum = 0.0f;
  for (int c = lane; c < a.head_dim; c += 32) sum = fmaf(bf16_to_float(dout[c]), out[c], sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) a.delta[item] = sum;
}

/// Sizes: D the padded head, kParts sixteens of queries a warp, kKeys keys in a block of keys.
template <int D, int kParts, int kKeys, int kSlots>
struct QuerySizes {
  static constexpr int kRows = kMmaWarps * 16 * kParts;
  static constexpr int kSharedBytes = 2 * D * (2 * kRows + kSlots * kKeys);
  static_assert(kSharedBytes <= kMostShared);
};

/// dq of up to kRows queries of one sequence in one head.
template <int D, int kParts, int kKeys, int kSlots>
class QueryGradientTile {
 public:
  using Sizes = QuerySizes<D, kParts, kKeys, kSlots>;
  __device__ QueryGradientTile(const AttentionArguments& a, const AttentionSequence& sequence,
                               int head, int first_query, int queries, uint4* shared)
      : a_(a),
        s_(sequence),
        head_(head),
        first_query_(first_query),
        queries_(queries),
        warp_row_(static_cast<int>(threadIdx.x) / 32 * 16 * kParts),
        q_(shared),
        dout_(q_ + Sizes::kRows * D / 8),
        slots_(dout_ + Sizes::kRows * D / 8) {}

  __device__ void run() {
    const int d = a_.head_dim;
    const int64_t row = s_.query_begin + first_query_, column = int64_t{head_} * d;
    const int begin = s_.first_key(first_query_, a_.window) / kKeys * kKeys;
    const int end = s_.last_key(first_query_ + queries_ - 1) + 1;
    const int blocks = (end - begin + kKeys - 1) / kKeys;
    const int64_t kv_column = int64_t{head_ / (a_.heads / a_.kv_heads)} * d;
    // Of each block of keys: v for dout v^T, then k for the scores and for dq.
    const auto load = [&](int n, uint4* slot) {
      const int key = begin + n / 2 * kKeys;
      load_heads<D, kKeys>(slot, n % 2 == 0 ? a_.v16 : a_.k16, s_.key_begin + key, kv_column,
                           end - key, d);
    };
    load_heads<D, Sizes::kRows>(q_, a_.q16, row, column, queries_, d);
    load_heads<D, Sizes::kRows>(dout_, a_.dout16, row, column, queries_, d);
    CopyRing<uint4, kSlots, kKeys * D / 8> ring(slots_, 2 * blocks, load);
    load_row_values(row);

    Sums<kParts, D> dq;
    clear_sums(dq);
    for (int block = 0; block < blocks; ++block) {
      const int key = begin + block * kKeys;
      const Seen seen = warp_row_ >= queries_
                            ? Seen::none
                            : s_.seen(first_query_ + warp_row_, 16 * kParts, key, kKeys, a_.window);
      Sums<kParts, kKeys> dp;
      const uint4* const v = ring.next(load);
      if (seen != Seen::none) make_scores<D>(tile_, dout_, warp_row_, v, dp);
      const uint4* const k = ring.next(load);
      if (seen == Seen::none) continue;
      Sums<kParts, kKeys> s;
      make_scores<D>(tile_, q_, warp_row_, k, s);
      if (seen == Seen::some) {
        mask_scores<false>(s_, first_query_ + warp_row_, key, a_.window, s);
      }
      make_score_gradients(s, dp);
      Weights<kParts, kKeys> weights;
      round_sums(dp, weights);
      add_values<D>(tile_, weights, k, 0, dq);
    }
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int first = warp_row_ + 16 * part;
      store_sums(
          a_.dq, row + first, column, queries_ - first, d, 0, [&](int) { return a_.scale; },
          dq[part]);
    }
  }

 private:
  __device__ void load_row_values(int64_t first) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = warp_row_ + 16 * part + sum_row(2 * half);
        const bool valid = r < queries_;
        log_sum_[part][half] = valid ? *head_row(a_.log_sum, first + r, head_) * kLog2e : 0.0f;
        delta_[part][half] = valid ? a_.delta[(first + r) * a_.heads + head_] : 0.0f;
      }
    }
  }

  /// dp, the gradients of weights, become those of scores.
  __device__ void make_score_gradients(const Sums<kParts, kKeys>& s,
                                       Sums<kParts, kKeys>& dp) const {
    const float scale = a_.scale * kLog2e;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float p = exp2_flushed(fmaf(s[part][n][i], scale, -log_sum_[part][i / 2]));
          dp[part][n][i] = p * (dp[part][n][i] - delta_[part][i / 2]);
        }
      }
    }
  }

  const AttentionArguments& a_;
  const AttentionSequence& s_;
  const HeadTile<D> tile_;
  int head_, first_query_, queries_, warp_row_;
  uint4 *q_, *dout_, *slots_;
  float log_sum_[kParts][2], delta_[kParts][2];  // log_sum: as a power of two
};

/// Grid as of the forward.
template <int D, int kParts, int kKeys, int kSlots>
__global__ void __launch_bounds__(kMmaThreads, 2)
    attention_dq_bf16(const __grid_constant__ AttentionArguments a) {
  uint4* const shared = shared_memory<uint4>();
  constexpr int kRows = QuerySizes<D, kParts, kKeys, kSlots>::kRows;
  const int tile = static_cast<int>((gridDim.x - 1 - blockIdx.x) / static_cast<unsigned>(a.heads));
  const int head = static_cast<int>(blockIdx.x) % a.heads;
  for_sequences(
      a, a.query_offsets, tile * kRows, (tile + 1) * kRows,
      [&](const AttentionSequence& s, int first, int count) {
        QueryGradientTile<D, kParts, kKeys, kSlots>(a, s, head, first, count, shared).run();
      });
}

template <int D, int kParts, int kKeys, int kSlots>
void query_gradients(void* stream, const AttentionArguments& a) {
  using Sizes = QuerySizes<D, kParts, kKeys, kSlots>;
  launch(attention_dq_bf16<D, kParts, kKeys, kSlots>,
         a.heads * parts_over(a.query_rows, Sizes::kRows), kMmaThreads, Sizes::kSharedBytes, stream,
         a);
}

}  // namespace

void attention_delta_bf16_on(void* stream, const AttentionArguments& a) {
  if (a.query_rows == 0) return;
  constexpr int kWarps = kDeltaThreads / 32;
  launch(attention_delta_bf16, parts_over(int64_t{a.query_rows} * a.heads, kWarps), kDeltaThreads,
         0, stream, a);
}

void attention_dq_bf16_on(void* stream, const AttentionArguments& a) {
  if (a.query_rows == 0) return;
  if (a.head_dim <= 64) return query_gradients<64, 2, 32, 3>(stream, a);
  if (a.head_dim <= 128) return query_gradients<128, 1, 64, 3>(stream, a);
  query_gradients<256, 1, 32, 2>(stream, a);
}

}  // namespace hearth::HEARTH_GPU
