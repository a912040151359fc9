// A: input norm, attention with its residual, post norm and, before experts, the router.
//
// forward   normed = rmsnorm(residual); q, k, v of it (qkv.h);
//           mid = residual + o(attention(q, k, v)); normed = rmsnorm(mid);
//           probs, choice, weight = router(normed)
// backward  from d_residual of the next layer (which reaches mid unchanged through the residual)
//           and d_normed, back to d_residual of this layer
#include <algorithm>
#include <cmath>
#include <utility>

#include "layers/kinds.h"
#include "layers/qkv.h"
#include "layers/router.h"

namespace hearth {

namespace {

AttentionShape attention_shape(const ModelSpec& spec, int32_t layer, Compute compute) {
  return {spec.heads,
          spec.kv_heads,
          spec.head_dim,
          spec.windows[static_cast<size_t>(layer)],
          1.0 / std::sqrt(static_cast<double>(spec.head_dim)),
          compute};
}

class AttentionPart final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const bool backward = s.phase == Phase::backward;
    const Access saved = backward ? Access::read : Access::write;
    std::vector<Port> list;
    const auto heads = [&](Value value, Access access, int64_t count) {
      list.push_back({.value = value,
                      .access = access,
                      .dtype = s.settings.activations,
                      .rows_per_token = 1,
                      .cols = count * s.spec.head_dim});
    };
    const auto column = [&](Value value, Access access, int64_t per_token) {
      list.push_back({.value = value,
                      .access = access,
                      .dtype = s.settings.activations,
                      .rows_per_token = per_token});
    };

    list.push_back(ports::hidden(s, Value::residual, Access::read));
    for (const Value v : {Value::query_offsets, Value::key_offsets}) {
      list.push_back({.value = v,
                      .access = Access::read,
                      .dtype = DType::i32,
                      .rows_per_token = 1,
                      .extra_rows = 1});
    }
    column(Value::input_rstd, saved, 1);
    add_qkv_ports(s, saved, list);
    heads(Value::attention, saved, s.spec.heads);
    list.push_back({.value = Value::log_sum,
                    .access = saved,
                    .dtype = s.settings.activations,
                    .rows_per_token = 1,
                    .cols = s.spec.heads});
    list.push_back(ports::hidden(s, Value::mid, saved));
    column(Value::mid_rstd, saved, 1);
    list.push_back(ports::hidden(s, Value::normed, saved));
    list.push_back(ports::hidden(s, Value::tmp_normed, Access::temporary));
    if (s.rounds && !backward) list.push_back(ports::normed_sent(s, Access::write));
    if (s.moe()) add_router_ports(s, saved, list);
    add_dropout_port(s, list);
    if (backward) {
      list.push_back(ports::hidden(s, Value::d_residual, Access::read, 1));
      list.push_back(ports::hidden(s, Value::d_residual, Access::write));
      list.push_back(ports::hidden(s, Value::d_normed, Access::update));
      list.push_back(ports::hidden(s, Value::tmp_mid, Access::temporary));
      column(Value::tmp_rstd, Access::temporary, 1);
      heads(Value::tmp_attention, Access::temporary, s.spec.heads);
      heads(Value::tmp_q, Access::temporary, s.spec.heads);
      heads(Value::tmp_k, Access::temporary, s.spec.kv_heads);
      heads(Value::tmp_v, Access::temporary, s.spec.kv_heads);
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    std::vector<BlockUse> uses;
    for (const BlockId id : maps_of(s)) add_block_uses(s, id, id + 1, uses);
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    const int64_t q = s.spec.heads * s.spec.head_dim, kv = s.spec.kv_heads * s.spec.head_dim;
    int64_t rank = 0;
    for (const BlockId id : maps_of(s)) rank = std::max(rank, s.table.rank_of(id, id + 1));
    ScratchNeed need = ops.attention_scratch(attention_shape(s.spec, s.layer, s.settings.compute),
                                             s.tokens, s.longest);
    for (const auto& [out, in] : {std::pair{q, s.spec.hidden},
                                  {kv, s.spec.hidden},
                                  {s.spec.hidden, q},
                                  {s.spec.experts, s.spec.hidden}}) {
      need = max_of(need, ops.linear_scratch(s.tokens, out, in, rank));
    }
    for (const int64_t width : {s.spec.hidden, s.spec.experts, q}) {
      need = max_of(need, ops.row_scratch(s.tokens, width));
    }
    return max_of(need, ops.row_scratch(s.tokens * s.spec.heads, s.spec.head_dim));
  }

  Work work(const TaskShape& s) const override {
    const double q = static_cast<double>(s.spec.heads * s.spec.head_dim);
    const double kv = static_cast<double>(s.spec.kv_heads * s.spec.head_dim);
    const double router = s.moe() ? static_cast<double>(s.spec.experts) : 0;
    const double linear = 2 * static_cast<double>(s.spec.hidden) * (2 * q + 2 * kv + router);
    // Backward makes the scores again: five products of a pair where forward has two.
    const BlockId block = s.table.find_block(BlockKind::attention, s.layer);
    return {matrix_work(s, linear, block, block + 1), s.phase == Phase::backward ? 10 * q : 4 * q,
            0, s.spec.windows[static_cast<size_t>(s.layer)]};
  }

  void run(const BodyContext& c) const override {
    if (c.phase == Phase::backward) {
      backward(c);
    } else {
      forward(c);
    }
  }

 private:
  static std::vector<BlockId> maps_of(const TaskShape& s) {
    std::vector<BlockId> blocks = {s.table.find_block(BlockKind::attention, s.layer)};
    if (s.moe()) blocks.push_back(s.table.find_block(BlockKind::router, s.layer));
    return blocks;
  }

  static void forward(const BodyContext& c) {
    const AttentionWeights w(c);
    const ModelSpec& spec = c.spec;
    const View normed = c.out(Value::tmp_normed);
    c.ops.rmsnorm_forward(c.stream, c.in(Value::residual), w.norm(Slot::input_norm), spec.norm_eps,
                          normed, row_vector(c.out(Value::input_rstd)));

    qkv_forward(c, w, normed);
    const int64_t keys = c.batch.past + c.batch.tokens;
    c.ops.attention_forward(c.stream, attention_shape(spec, c.layer, c.settings.compute),
                            offsets_of(c), c.in(Value::q), c.in(Value::k).slice(0, keys),
                            c.in(Value::v).slice(0, keys), c.out(Value::attention),
                            c.out(Value::log_sum));
    const View mid = c.out(Value::mid);
    c.ops.linear_forward(c.stream, c.in(Value::attention), w.linear(Slot::o, Slot::o_bias), mid);
    c.ops.add(c.stream, c.in(Value::residual), mid, mid);
    c.ops.rmsnorm_forward(c.stream, mid, w.norm(Slot::post_norm), spec.norm_eps,
                          c.out(Value::normed), row_vector(c.out(Value::mid_rstd)));
    if (c.has(Value::normed_sent)) {
      c.ops.cast(c.stream, c.in(Value::normed), c.out(Value::normed_sent));
    }
    if (c.moe()) router_forward(c);
  }

  static void backward(const BodyContext& c) {
    const AttentionWeights w(c);
    const ModelSpec& spec = c.spec;
    const View d_normed = c.out(Value::d_normed);
    if (c.moe()) router_backward(c, d_normed);

    // mid reaches the next layer's residual unchanged and through the post norm.
    const View d_mid = c.out(Value::tmp_mid);
    c.ops.rmsnorm_backward(c.stream, d_normed, c.in(Value::mid), w.norm(Slot::post_norm),
                           row_vector(c.in(Value::mid_rstd)), d_mid, w.gradient(Slot::post_norm));
    c.ops.add(c.stream, c.in(Value::d_residual, 1), d_mid, d_mid);

    const View d_attention = c.out(Value::tmp_attention);
    c.ops.linear_dgrad(c.stream, d_mid, w.linear(Slot::o, Slot::o_bias), d_attention, false);
    w.add_gradient(d_mid, c.in(Value::attention), Slot::o, Slot::o_bias);

    const View dq = c.out(Value::tmp_q), dk = c.out(Value::tmp_k), dv = c.out(Value::tmp_v);
    c.ops.attention_backward(c.stream, attention_shape(spec, c.layer, c.settings.compute),
                             offsets_of(c), d_attention, c.in(Value::q), c.in(Value::k),
                             c.in(Value::v), c.in(Value::attention), c.in(Value::log_sum), dq, dk,
                             dv);
    // The input norm's output is cheap to make again, so it is not kept.
    const View normed = c.out(Value::tmp_normed);
    c.ops.rmsnorm_forward(c.stream, c.in(Value::residual), w.norm(Slot::input_norm), spec.norm_eps,
                          normed, row_vector(c.out(Value::tmp_rstd)));
    qkv_backward(c, w, dq, dk, dv, normed);
    const View d_residual = c.out(Value::d_residual);
    c.ops.rmsnorm_backward(c.stream, normed, c.in(Value::residual), w.norm(Slot::input_norm),
                           row_vector(c.in(Value::input_rstd)), d_residual,
                           w.gradient(Slot::input_norm));
    c.ops.add(c.stream, d_mid, d_residual, d_residual);
  }

  static SequenceOffsets offsets_of(const BodyContext& c) {
    const int64_t n = c.batch.sequences + 1;
    return {row_vector(c.in(Value::query_offsets).slice(0, n)),
            row_vector(c.in(Value::key_offsets).slice(0, n))};
  }
};

}  // namespace

const Body& attention_body() {
  static const AttentionPart body;
  return body;
}

}  // namespace hearth
