#include <cmath>

#include "cpu_kernels/attention_tiles.h"
#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

// Where a lane starts: below every score, yet finite, so that a block of which the lane sees
// nothing leaves its sums at zero.
constexpr float kLowest = -1e30f;

// For each lane of scores times `scale`: the new maximum, what the old sums are to be multiplied by, exp(score - maximum)
// in place of the scores, and their sum.
HEARTH_CLONES void softmax_block(Scores scores, float scale, int64_t keys, int64_t lanes,
                                 float* largest, float* correction, float* sum) {
  for (int64_t begin = 0; begin < lanes; begin += 16) {
    float top[16], total[16] = {};
    for (int l = 0; l < 16; ++l) top[l] = largest[begin + l];
    for (int64_t i = 0; i < keys; ++i) {
      float* s = scores + i * kLanes + begin;
      for (int l = 0; l < 16; ++l) {
        s[l] *= scale;
        top[l] = s[l] > top[l] ? s[l] : top[l];
      }
    }
    for (int64_t i = 0; i < keys; ++i) {
      float* s = scores + i * kLanes + begin;
      for (int l = 0; l < 16; ++l) {
        s[l] = fast_exp(s[l] - top[l]);
        total[l] += s[l];
      }
    }
    for (int l = 0; l < 16; ++l) {
      const float c = fast_exp(largest[begin + l] - top[l]);
      correction[begin + l] = c;
      sum[begin + l] = sum[begin + l] * c + total[l];
      largest[begin + l] = top[l];
    }
  }
}

HEARTH_CLONES void correct_rows(float* x, int64_t rows, int64_t lanes, const float* correction) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t l = 0; l < lanes; ++l) x[i * kLanes + l] *= correction[l];
  }
}

// Softmax over blocks of keys as they come, with sums relative to the largest score so far
// (Dao et al., FlashAttention, 2022, algorithm 1).
void attend(Scratch& scratch, const LaneBlock& lanes, ConstView q, ConstView k, ConstView v,
            View out, View log_sum) {
  Scratch::Frame frame(scratch);
  const int64_t d = lanes.shape.head_dim, n = lanes.padded();
  float* rows = scratch.take<float>(kLanes * d);
  float* queries = scratch.take<float>(transposed_floats(d));
  float* sums = scratch.take<float>(kLanes * d);
  float* scores = scratch.take<float>(kKeys * kLanes);
  float* packed = scratch.take<float>(small_pairs_floats(kKeys, kLanes));
  float* left = scratch.take<float>(kLeftFloats);
  float *largest = scratch.take<float>(kLanes), *correction = scratch.take<float>(kLanes),
        *sum = scratch.take<float>(kLanes);
  const AttentionProducts products(lanes.shape);
  gather_lanes(lanes, q, products.query_scale(), rows);
  const SmallRight q_right = products.transposed(rows, d, n, queries);
  std::fill_n(largest, kLanes, kLowest);
  std::fill_n(sum, kLanes, 0.0f);
  std::fill_n(sums, d * kLanes, 0.0f);

  for (int64_t key = lanes.first_key() / kKeys * kKeys; key <= lanes.last_key(); key += kKeys) {
    const int64_t keys = std::min(kKeys, lanes.last_key() + 1 - key);
    multiply_small(lanes.key_block(k, key, keys), q_right, scores, kLanes, false, left);
    mask_scores(lanes, key, keys, scores);
    softmax_block(scores, products.score_scale(), keys, n, largest, correction, sum);
    correct_rows(sums, d, n, correction);
    multiply_small(Operand(lanes.key_block(v, key, keys), true),
                   products.plain(scores, keys, n, kLanes, packed), sums, kLanes, true, left);
  }
  for (int64_t l = 0; l < lanes.count; ++l) {
    log_sum.row<float>(lanes.row(l))[lanes.head(l)] = largest[l] + std::log(sum[l]);
    sum[l] = 1.0f / sum[l];
  }
  scatter_lanes(lanes, sums, sum, rows, out);
}

void attention_forward(Stream& stream, const AttentionShape& shape, const SequenceOffsets& offsets,
                       ConstView q, ConstView k, ConstView v, View out, View log_sum) {
  check_offsets(offsets, q, k);
  HostStream& host = host_stream(stream);
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t lanes = offsets.query.as<int32_t>()[offsets.count()] * group;
  const int64_t blocks = (lanes + kLanes - 1) / kLanes;
  host.pool().run(blocks * shape.kv_heads, [&](int64_t tile, int worker) {
    const int64_t begin = tile / shape.kv_heads * kLanes, end = begin + kLanes;
    for_sequences(offsets.query, group, begin, end, [&](int64_t n) {
      const AttentionSequence s(offsets, n);
      const int64_t origin = s.query_begin * group;
      const int64_t first = std::max(begin, origin);
      const int64_t past = std::min(end, origin + s.queries * group);
      attend(host.worker_scratch(worker),
             {shape, s, tile % shape.kv_heads, first - origin, past - first}, q, k, v, out,
             log_sum);
    });
  });
}

}  // namespace

void cpu::add_attention_forward(OpTable& ops) {
  ops.attention_forward.add(CpuOps::kName, attention_forward);
}

}  // namespace hearth
