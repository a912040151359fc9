#include "cpu_kernels/attention_tiles.h"
#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/row_math.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"
#include "cpu_kernels/weight_tiles.h"

namespace hearth {
namespace {

// scores become P = exp(scores - log_sum), dscores become dS = P * (dscores - delta).
HEARTH_CLONES void softmax_gradient(Scores scores, Scores dscores, int64_t keys, int64_t lanes,
                                    const float* log_sum, const float* delta) {
  for (int64_t i = 0; i < keys; ++i) {
    float *s = scores + i * kLanes, *g = dscores + i * kLanes;
    HEARTH_SAME_OR_APART
    for (int64_t l = 0; l < lanes; ++l) {
      const float p = fast_exp(s[l] - log_sum[l]);
      s[l] = p;
      g[l] = p * (g[l] - delta[l]);
    }
  }
}

struct Backward {
  HostStream& host;
  const AttentionShape& shape;
  const SequenceOffsets& offsets;
  ConstView dout, q, k, v, log_sum;
  const float* delta;  // [Tq, heads]: <dout, out>
  View dq, dk, dv;

  int64_t group() const { return shape.heads / shape.kv_heads; }
};

// The queries of a lane block with what a block of keys needs of them.
class Lanes {
 public:
  Lanes(Scratch& scratch, const Backward& pass)
      : pass_(pass),
        queries_(scratch.take<float>(kLanes * pass.shape.head_dim)),
        douts_(scratch.take<float>(kLanes * pass.shape.head_dim)),
        queries_t_(scratch.take<float>(kLanes * pass.shape.head_dim)),
        douts_t_(scratch.take<float>(kLanes * pass.shape.head_dim)),
        scores_(scratch.take<float>(kKeys * kLanes)),
        dscores_(scratch.take<float>(kKeys * kLanes)),
        log_sum_(scratch.take<float>(kLanes)),
        delta_(scratch.take<float>(kLanes)),
        left_(scratch.take<float>(kLeftFloats)) {}

  void load(const LaneBlock& lanes) {
    const int64_t d = pass_.shape.head_dim;
    gather_lanes(lanes, pass_.q, static_cast<float>(pass_.shape.scale), queries_);
    gather_lanes(lanes, pass_.dout, 1.0f, douts_);
    transpose_lanes(queries_, d, queries_t_);
    transpose_lanes(douts_, d, douts_t_);
    // Past the end exp(0 - infinity) = 0.
    std::fill_n(log_sum_, kLanes, -kMasked);
    std::fill_n(delta_, kLanes, 0.0f);
    for (int64_t l = 0; l < lanes.count; ++l) {
      log_sum_[l] = pass_.log_sum.row<float>(lanes.row(l))[lanes.head(l)];
      delta_[l] = pass_.delta[lanes.row(l) * pass_.shape.heads + lanes.head(l)];
    }
  }

  // P and dS of keys [key, key + n), dS of the scaled scores.
  void compute(const LaneBlock& lanes, int64_t key, int64_t n) {
    multiply_in_place(lanes.key_block(pass_.k, key, n), false, queries_t_, kLanes, lanes.padded(),
                      scores_, kLanes, false, left_);
    multiply_in_place(lanes.key_block(pass_.v, key, n), false, douts_t_, kLanes, lanes.padded(),
                      dscores_, kLanes, false, left_);
    mask_scores(lanes, key, n, scores_);
    softmax_gradient(scores_, dscores_, n, lanes.padded(), log_sum_, delta_);
  }

  const float* queries() const { return queries_; }
  const float* douts() const { return douts_; }
  const float* dscores() const { return dscores_; }
  ConstView scores_view(int64_t n, int64_t count) const {
    return {scores_, DType::f32, n, count, kLanes};
  }
  ConstView dscores_view(int64_t n, int64_t count) const {
    return {dscores_, DType::f32, n, count, kLanes};
  }
  float* left() const { return left_; }

 private:
  const Backward& pass_;
  float *queries_, *douts_, *queries_t_, *douts_t_, *scores_, *dscores_, *log_sum_, *delta_, *left_;
};

// dk and dv of some keys of a sequence, which this tile owns: over the queries that see them.
void key_gradients(const Backward& pass, Scratch& scratch, const AttentionSequence& s,
                   int64_t kv_head, int64_t key, int64_t n) {
  Scratch::Frame frame(scratch);
  Lanes block(scratch, pass);
  const int64_t d = pass.shape.head_dim;
  const Range head{kv_head * d, d};
  const View dk = columns(pass.dk.slice(s.key_begin + key, n), head);
  const View dv = columns(pass.dv.slice(s.key_begin + key, n), head);
  for (int64_t i = 0; i < n; ++i) {
    std::fill_n(dk.row<float>(i), d, 0.0f);
    std::fill_n(dv.row<float>(i), d, 0.0f);
  }
  const int64_t all = s.queries * pass.group();
  for (int64_t begin = 0; begin < all; begin += kLanes) {
    const LaneBlock lanes{pass.shape, s, kv_head, begin, std::min(kLanes, all - begin)};
    if (lanes.last_key() < key || lanes.first_key() >= key + n) continue;
    block.load(lanes);
    block.compute(lanes, key, n);
    multiply_in_place(block.scores_view(n, lanes.count), false, block.douts(), d, d, dv.as<float>(),
                      dv.stride, true, block.left());
    multiply_in_place(block.dscores_view(n, lanes.count), false, block.queries(), d, d,
                      dk.as<float>(), dk.stride, true, block.left());
  }
}

// dq of a block of lanes: over the keys that they see.
void query_gradients(const Backward& pass, Scratch& scratch, const LaneBlock& lanes) {
  Scratch::Frame frame(scratch);
  Lanes block(scratch, pass);
  const int64_t d = pass.shape.head_dim;
  float* sums = scratch.take<float>(kLanes * d);
  float* rows = scratch.take<float>(kLanes * d);
  float* scale = scratch.take<float>(kLanes);
  std::fill_n(sums, kLanes * d, 0.0f);
  std::fill_n(scale, kLanes, static_cast<float>(pass.shape.scale));
  block.load(lanes);
  for (int64_t key = lanes.first_key() / kKeys * kKeys; key <= lanes.last_key(); key += kKeys) {
    const int64_t n = std::min(kKeys, lanes.last_key() + 1 - key);
    block.compute(lanes, key, n);
    multiply_in_place(Operand(lanes.key_block(pass.k, key, n), true), false, block.dscores(),
                      kLanes, lanes.padded(), sums, kLanes, true, block.left());
  }
  scatter_lanes(lanes, sums, scale, rows, pass.dq);
}

}  // namespace

// Tiles that own keys and tiles that own queries each recompute the scores: two products more than
// one pass would need, and every element of dq, dk and dv has one owner and one order of sums.
void CpuOps::attention_backward(Stream& stream, const AttentionShape& shape,
                                const SequenceOffsets& offsets, ConstView dout, ConstView q,
                                ConstView k, ConstView v, ConstView out, ConstView log_sum, View dq,
                                View dk, View dv) const {
  check_attention(shape, offsets, q, k, v, out, log_sum);
  HEARTH_CHECK(has_shape(dout, q.rows, q.cols) && has_shape(dq, q.rows, q.cols) &&
                   has_shape(dk, k.rows, k.cols) && has_shape(dv, v.rows, v.cols),
               "attention_backward: shapes");
  HostStream& host = host_stream(stream);
  Scratch::Frame frame(stream.scratch());
  const int64_t heads = shape.heads, d = shape.head_dim;
  float* delta = stream.scratch().take<float>(q.rows * heads);
  for_blocks(host, q.rows, row_block(q.cols), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        delta[t * heads + h] =
            static_cast<float>(dot(dout.row<float>(t) + h * d, out.row<float>(t) + h * d, d));
      }
    }
  });

  const Backward pass{host, shape, offsets, dout, q, k, v, log_sum, delta, dq, dk, dv};
  const int64_t group = pass.group(), n = offsets.count();
  const int64_t lanes = offsets.query.as<int32_t>()[n] * group;
  const int64_t query_tiles = (lanes + kLanes - 1) / kLanes * shape.kv_heads;
  const int64_t keys = offsets.key.as<int32_t>()[n];
  const int64_t key_tiles = (keys + kKeys - 1) / kKeys * shape.kv_heads;
  host.pool().run(query_tiles + key_tiles, [&](int64_t tile, int worker) {
    Scratch& scratch = host.worker_scratch(worker);
    const int64_t kv_head = tile % shape.kv_heads;
    if (tile < key_tiles) {
      const int64_t begin = tile / shape.kv_heads * kKeys, end = begin + kKeys;
      for_sequences(offsets.key, 1, begin, end, [&](int64_t i) {
        const AttentionSequence s(offsets, i);
        const int64_t first = std::max(begin, s.key_begin);
        const int64_t past = std::min(end, s.key_begin + s.keys);
        key_gradients(pass, scratch, s, kv_head, first - s.key_begin, past - first);
      });
    } else {
      const int64_t index = tile - key_tiles;
      const int64_t begin = index / shape.kv_heads * kLanes, end = begin + kLanes;
      for_sequences(offsets.query, group, begin, end, [&](int64_t i) {
        const AttentionSequence s(offsets, i);
        const int64_t origin = s.query_begin * group;
        const int64_t first = std::max(begin, origin);
        const int64_t past = std::min(end, origin + s.queries * group);
        query_gradients(pass, scratch,
                        {shape, s, index % shape.kv_heads, first - origin, past - first});
      });
    }
  });
}

}  // namespace hearth
