#include "cpu_kernels/attention_tiles.h"
#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/packing.h"
#include "cpu_kernels/row_math.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"
#include "cpu_kernels/weight_tiles.h"

namespace hearth {
namespace {

// scores become P = exp(scale * scores - log_sum), dscores become scale * P * (dscores - delta).
HEARTH_CLONES void softmax_gradient(Scores scores, Scores dscores, float scale, int64_t keys,
                                    int64_t lanes, const float* log_sum, const float* delta) {
  for (int64_t i = 0; i < keys; ++i) {
    float *s = scores + i * kLanes, *g = dscores + i * kLanes;
    HEARTH_SAME_OR_APART
    for (int64_t l = 0; l < lanes; ++l) {
      const float p = fast_exp(scale * s[l] - log_sum[l]);
      s[l] = p;
      g[l] = scale * (p * (g[l] - delta[l]));
    }
  }
}

HEARTH_CLONES void add_row(const float* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// One head of queries with the head of keys that it reads: an attention of one head, each a column
// of the whole.
struct Head {
  AttentionShape shape;
  ConstView dout, q, k, v, out, log_sum;
  View dq, dk, dv;
};

void clear(const View& x) {
  for (int64_t r = 0; r < x.rows; ++r) std::fill_n(x.row<float>(r), x.cols, 0.0f);
}

// The gradients of a sequence in one head: a block of lanes at a time, against the blocks of keys
// that it sees. dk and dv add up in place, in the order of the lanes.
class Gradients {
 public:
  Gradients(Scratch& scratch, const Head& head)
      : head_(head),
        products_(head.shape),
        d_(head.shape.head_dim),
        queries_(scratch.take<float>(kLanes * d_)),
        douts_(scratch.take<float>(kLanes * d_)),
        queries_t_(scratch.take<float>(transposed_floats(d_))),
        douts_t_(scratch.take<float>(transposed_floats(d_))),
        queries_packed_(scratch.take<float>(small_pairs_floats(kLanes, d_))),
        douts_packed_(scratch.take<float>(small_pairs_floats(kLanes, d_))),
        dscores_packed_(scratch.take<float>(small_pairs_floats(kKeys, kLanes))),
        dqueries_t_(scratch.take<float>(kLanes * d_)),
        scores_(scratch.take<float>(kKeys * kLanes)),
        dscores_(scratch.take<float>(kKeys * kLanes)),
        log_sum_(scratch.take<float>(kLanes)),
        delta_(scratch.take<float>(kLanes)),
        scale_(scratch.take<float>(kLanes)),
        left_(scratch.take<float>(kLeftFloats)) {
    std::fill_n(scale_, kLanes, products_.query_scale());
  }

  void run(const AttentionSequence& s) {
    clear(head_.dk.slice(s.key_begin, s.keys));
    clear(head_.dv.slice(s.key_begin, s.keys));
    for (int64_t begin = 0; begin < s.queries; begin += kLanes) {
      const LaneBlock lanes{head_.shape, s, 0, begin, std::min(kLanes, s.queries - begin)};
      load(lanes);
      for (int64_t key = lanes.first_key() / kKeys * kKeys; key <= lanes.last_key(); key += kKeys) {
        add_keys(lanes, key, std::min(kKeys, lanes.last_key() + 1 - key));
      }
      scatter_lanes(lanes, dqueries_t_, scale_, queries_, head_.dq);
    }
  }

 private:
  void load(const LaneBlock& lanes) {
    gather_lanes(lanes, head_.q, products_.query_scale(), queries_);
    gather_lanes(lanes, head_.dout, 1.0f, douts_);
    // So that delta is of the same numbers as the product from which it is taken.
    if (products_.pairs()) load_row(DType::f32, douts_, true, douts_, lanes.count * d_);
    q_transposed_ = products_.transposed(queries_, d_, lanes.padded(), queries_t_);
    dout_transposed_ = products_.transposed(douts_, d_, lanes.padded(), douts_t_);
    q_ = products_.plain(queries_, lanes.count, d_, d_, queries_packed_);
    dout_ = products_.plain(douts_, lanes.count, d_, d_, douts_packed_);
    std::fill_n(dqueries_t_, kLanes * d_, 0.0f);
    // Past the end exp(0 - infinity) = 0.
    std::fill_n(log_sum_, kLanes, -kMasked);
    std::fill_n(delta_, kLanes, 0.0f);
    for (int64_t l = 0; l < lanes.count; ++l) {
      const int64_t row = lanes.row(l);
      log_sum_[l] = head_.log_sum.row<float>(row)[0];
      delta_[l] = static_cast<float>(dot(douts_ + l * d_, head_.out.row<float>(row), d_));
    }
  }

  // What keys [key, key + n) give and get. The scale is either in the queries or in dS.
  void add_keys(const LaneBlock& lanes, int64_t key, int64_t n) {
    const ConstView k = lanes.key_block(head_.k, key, n), v = lanes.key_block(head_.v, key, n);
    const int64_t padded = lanes.padded();
    multiply_small(k, q_transposed_, scores_, kLanes, false, left_);
    multiply_small(v, dout_transposed_, dscores_, kLanes, false, left_);
    mask_scores(lanes, key, n, scores_);
    softmax_gradient(scores_, dscores_, products_.score_scale(), n, padded, log_sum_, delta_);
    const int64_t at = lanes.sequence.key_begin + key;
    const View dk = head_.dk.slice(at, n), dv = head_.dv.slice(at, n);
    const ConstView p(scores_, DType::f32, n, lanes.count, kLanes);
    const ConstView ds(dscores_, DType::f32, n, lanes.count, kLanes);
    multiply_small(p, dout_, dv.as<float>(), dv.stride, true, left_);
    multiply_small(ds, q_, dk.as<float>(), dk.stride, true, left_);
    multiply_small(Operand(k, true), products_.plain(dscores_, n, padded, kLanes, dscores_packed_),
                   dqueries_t_, kLanes, true, left_);
  }

  const Head& head_;
  const AttentionProducts products_;
  int64_t d_;
  float *queries_, *douts_, *queries_t_, *douts_t_, *queries_packed_, *douts_packed_,
      *dscores_packed_, *dqueries_t_, *scores_, *dscores_, *log_sum_, *delta_, *scale_, *left_;
  SmallRight q_transposed_, dout_transposed_, q_, dout_;  // of the lanes
};

// to[:, h] = the sum over the heads of the group that reads it, in order.
void add_groups(HostStream& host, const View& by_head, int64_t group, int64_t d, const View& to) {
  for_blocks(host, to.rows, row_block(by_head.cols), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t h = 0; h < by_head.cols / d; ++h) {
        const float* from = by_head.row<float>(t) + h * d;
        float* sum = to.row<float>(t) + h / group * d;
        if (h % group == 0) {
          std::copy_n(from, d, sum);
        } else {
          add_row(from, sum, d);
        }
      }
    }
  });
}

// A tile is a sequence in one head of queries, which owns its dq; scores are made once for all three
// gradients. Heads that share keys each have dk and dv of their own, which are added afterwards.
void attention_backward(Stream& stream, const AttentionShape& shape, const SequenceOffsets& offsets,
                        ConstView dout, ConstView q, ConstView k, ConstView v, ConstView out,
                        ConstView log_sum, View dq, View dk, View dv) {
  check_offsets(offsets, q, k);
  HostStream& host = host_stream(stream);
  Scratch::Frame frame(stream.scratch());
  const int64_t heads = shape.heads, d = shape.head_dim, group = heads / shape.kv_heads;
  const int64_t keys = offsets.key.as<int32_t>()[offsets.count()];
  const auto by_head = [&](const View& x) {
    if (group == 1) return x;
    return View(stream.scratch().take<float>(keys * heads * d), DType::f32, keys, heads * d);
  };
  const View dk_by_head = by_head(dk), dv_by_head = by_head(dv);
  host.pool().run(offsets.count() * heads, [&](int64_t tile, int worker) {
    const int64_t h = tile % heads;
    const Range own{h * d, d}, read{h / group * d, d}, one{h, 1};
    const Head head{{1, 1, d, shape.window, shape.scale, shape.compute},
                    columns(dout, own),
                    columns(q, own),
                    columns(k, read),
                    columns(v, read),
                    columns(out, own),
                    columns(log_sum, one),
                    columns(dq, own),
                    columns(dk_by_head, own),
                    columns(dv_by_head, own)};
    Scratch& scratch = host.worker_scratch(worker);
    Scratch::Frame tile_frame(scratch);
    Gradients(scratch, head).run(AttentionSequence(offsets, tile / heads));
  });
  if (group == 1) return;
  add_groups(host, dk_by_head, group, d, dk.slice(0, keys));
  add_groups(host, dv_by_head, group, d, dv.slice(0, keys));
}

}  // namespace

void cpu::add_attention_backward(OpTable& ops) {
  ops.attention_backward.add(CpuOps::kName, attention_backward);
}

}  // namespace hearth
