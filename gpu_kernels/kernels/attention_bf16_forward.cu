// Causal attention over packed sequences on the tensor cores. Softmax as in attention_forward.cu: over
// blocks of keys as they come, relative to the largest score so far.
#include "gpu_kernels/kernels/attention_bf16.cuh"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int kForwardSlots = 3;

/// Sizes: D the padded head, kParts sixteens of queries a warp, kKeys keys in a block of keys.
template <int D, int kParts, int kKeys>
struct ForwardSizes {
  static constexpr int kRows = kMmaWarps * 16 * kParts;
  static constexpr int kSharedBytes = 2 * D * (kRows + kForwardSlots * kKeys);
  static_assert(kSharedBytes <= kMostShared);
};

/// Up to kRows queries of one sequence in one head.
template <int D, int kParts, int kKeys>
class ForwardTile {
 public:
  using Sizes = ForwardSizes<D, kParts, kKeys>;
  __device__ ForwardTile(const AttentionArguments& a, const AttentionSequence& sequence, int head,
                         int first_query, int queries, uint4* shared)
      : a_(a),
        s_(sequence),
        head_(head),
        first_query_(first_query),
        queries_(queries),
        warp_row_(static_cast<int>(threadIdx.x) / 32 * 16 * kParts),
        q_(shared),
        slots_(q_ + Sizes::kRows * D / 8) {}

  __device__ void run() {
    const int d = a_.head_dim;
    const int begin = s_.first_key(first_query_, a_.window) / kKeys * kKeys;
    const int end = s_.last_key(first_query_ + queries_ - 1) + 1;
    const int blocks = (end - begin + kKeys - 1) / kKeys;
    const int64_t kv_column = int64_t{head_ / (a_.heads / a_.kv_heads)} * d;
    // Of each block of keys: k, then v.
    const auto load = [&](int n, uint4* slot) {
      const int key = begin + n / 2 * kKeys;
      load_heads<D, kKeys>(slot, n % 2 == 0 ? a_.k16 : a_.v16, s_.key_begin + key, kv_column,
                           end - key, d);
    };
    load_heads<D, Sizes::kRows>(q_, a_.q16, s_.query_begin + first_query_, int64_t{head_} * d,
                                queries_, d);
    CopyRing<uint4, kForwardSlots, kKeys * D / 8> ring(slots_, 2 * blocks, load);

    clear_sums(o_);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        largest_[part][half] = kLowestScore;
        sum_[part][half] = 0.0f;
      }
    }
    for (int block = 0; block < blocks; ++block) {
      const int key = begin + block * kKeys;
      const Seen seen = warp_row_ >= queries_
                            ? Seen::none
                            : s_.seen(first_query_ + warp_row_, 16 * kParts, key, kKeys, a_.window);
      Weights<kParts, kKeys> weights;
      const uint4* const k = ring.next(load);
      if (seen != Seen::none) {
        Sums<kParts, kKeys> s;
        make_scores<D>(tile_, q_, warp_row_, k, s);
        if (seen == Seen::some) {
          mask_scores<false>(s_, first_query_ + warp_row_, key, a_.window, s);
        }
        softmax(s);
        round_sums(s, weights);
      }
      const uint4* const v = ring.next(load);
      if (seen != Seen::none) add_values<D>(tile_, weights, v, 0, o_);
    }
    store();
  }

 private:
  /// Scores become weights; what was summed up is brought to the new maxima, if there are any. A
  /// thread sums its own columns; the four threads of a row are added at the end.
  __device__ void softmax(Sums<kParts, kKeys>& s) {
    const float scale = a_.scale * kLog2e;
    float correction[kParts][2];
    bool larger = false;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float top = -INFINITY;
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
          top = fmaxf(top, fmaxf(s[part][n][2 * half], s[part][n][2 * half + 1]));
        }
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        top = fmaxf(largest_[part][half], top * scale);
        larger = larger || top > largest_[part][half];
        correction[part][half] = exp2_flushed(largest_[part][half] - top);
        largest_[part][half] = top;
      }
    }
    if (__any_sync(0xffffffffu, larger)) correct(correction);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          s[part][n][i] = exp2_flushed(fmaf(s[part][n][i], scale, -largest_[part][i / 2]));
          sum_[part][i / 2] += s[part][n][i];
        }
      }
    }
  }

  __device__ void correct(const float (&correction)[kParts][2]) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int half = 0; half < 2; ++half) sum_[part][half] *= correction[part][half];
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) o_[part][n][i] *= correction[part][i / 2];
      }
    }
  }

  __device__ void store() {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int first = warp_row_ + 16 * part;
      const int64_t row = s_.query_begin + first_query_ + first;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float& sum = sum_[part][half];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const int r = sum_row(2 * half);
        if (sum_column(0) == 0 && first + r < queries_) {
          *head_row(a_.log_sum, row + r, head_) = largest_[part][half] * kLn2 + logf(sum);
        }
      }
      store_sums(
          a_.out, row, int64_t{head_} * a_.head_dim, queries_ - first, a_.head_dim, 0,
          [&](int half) { return 1.0f / sum_[part][half]; }, o_[part]);
    }
  }

  const AttentionArguments& a_;
  const AttentionSequence& s_;
  const HeadTile<D> tile_;
  int head_, first_query_, queries_, warp_row_;
  uint4 *q_, *slots_;
  Sums<kParts, D> o_;
  float largest_[kParts][2], sum_[kParts][2];  // largest: as a power of two
};

/// Grid: for each tile of kRows query rows, from the last, which sees most keys, to the first, all
/// heads.
template <int D, int kParts, int kKeys>
__global__ void __launch_bounds__(kMmaThreads, 2)
    attention_forward_bf16(const __grid_constant__ AttentionArguments a) {
  uint4* const shared = shared_memory<uint4>();
  constexpr int kRows = ForwardSizes<D, kParts, kKeys>::kRows;
  const int tile = static_cast<int>((gridDim.x - 1 - blockIdx.x) / static_cast<unsigned>(a.heads));
  const int head = static_cast<int>(blockIdx.x) % a.heads;
  for_sequences(a, a.query_offsets, tile * kRows, (tile + 1) * kRows,
                [&](const AttentionSequence& s, int first, int count) {
                  ForwardTile<D, kParts, kKeys>(a, s, head, first, count, shared).run();
                });
}

template <int D, int kParts, int kKeys>
void forward(void* stream, const AttentionArguments& a) {
  using Sizes = ForwardSizes<D, kParts, kKeys>;
  launch(attention_forward_bf16<D, kParts, kKeys>, a.heads * parts_over(a.query_rows, Sizes::kRows),
         kMmaThreads, Sizes::kSharedBytes, stream, a);
}

}  // namespace

void attention_forward_bf16_on(void* stream, const AttentionArguments& a) {
  if (a.query_rows == 0) return;
  if (a.head_dim <= 64) return forward<64, 2, 64>(stream, a);
  if (a.head_dim <= 128) return forward<128, 2, 32>(stream, a);
  forward<256, 1, 32>(stream, a);
}

}  // namespace hearth::HEARTH_GPU
