#include "layers/qkv.h"

#include <optional>

#include "layers/kinds.h"

namespace hearth {

namespace {

struct ProjectionNorm {
  Slot weight;
  Value raw, rstd;
};

/// One of the three: its tensors and values. Only q and k have a norm, and they are rotated.
struct Projection {
  Slot weight, bias;
  Value unclamped, out;
  std::optional<ProjectionNorm> norm;

  bool is_normed(const ModelSpec& spec) const { return norm && spec.qk_norm != QkNorm::none; }
};

constexpr Projection kQ = {Slot::q, Slot::q_bias, Value::q_unclamped, Value::q,
                           ProjectionNorm{Slot::q_norm, Value::q_raw, Value::q_rstd}};
constexpr Projection kK = {Slot::k, Slot::k_bias, Value::k_unclamped, Value::k,
                           ProjectionNorm{Slot::k_norm, Value::k_raw, Value::k_rstd}};
constexpr Projection kV = {Slot::v, Slot::v_bias, Value::v_unclamped, Value::v, std::nullopt};

int64_t heads_of(const ModelSpec& spec, const Projection& p) {
  return p.out == Value::q ? spec.heads : spec.kv_heads;
}

/// What a norm sees as its rows: heads, or all of a token.
View norm_rows(const ModelSpec& spec, View v) {
  if (spec.qk_norm == QkNorm::whole) return v;
  return v.reshape(v.size() / spec.head_dim, spec.head_dim);
}
ConstView norm_rows(const ModelSpec& spec, ConstView v) {
  if (spec.qk_norm == QkNorm::whole) return v;
  return v.reshape(v.size() / spec.head_dim, spec.head_dim);
}

void rotate(const BodyContext& c, const Projection& p, View y, bool inverse) {
  if (!p.norm) return;
  c.ops.rope(c.stream, y, heads_of(c.spec, p), row_vector(c.in(Value::positions)),
             c.in(Value::rope_cosine), c.in(Value::rope_sine), inverse);
}

void forward(const BodyContext& c, const AttentionWeights& w, const Projection& p, ConstView normed,
             View y) {
  const ModelSpec& spec = c.spec;
  const View unclamped = spec.qkv_limit > 0 ? c.out(p.unclamped) : y;
  const View raw = p.is_normed(spec) ? c.out(p.norm->raw) : unclamped;
  c.ops.linear_forward(c.stream, normed, w.linear(p.weight, p.bias), raw);
  if (p.is_normed(spec)) {
    c.ops.rmsnorm_forward(c.stream, norm_rows(spec, raw), w.norm(p.norm->weight), spec.norm_eps,
                          norm_rows(spec, unclamped), row_vector(c.out(p.norm->rstd)));
  }
  if (spec.qkv_limit > 0) c.ops.clamp_forward(c.stream, unclamped, spec.qkv_limit, y);
  rotate(c, p, y, false);
}

/// dy becomes the gradient of the linear map's output, which is added to the map's.
void backward(const BodyContext& c, const AttentionWeights& w, const Projection& p, View dy,
              ConstView normed) {
  const ModelSpec& spec = c.spec;
  rotate(c, p, dy, true);
  if (spec.qkv_limit > 0) {
    c.ops.clamp_backward(c.stream, dy, c.in(p.unclamped), spec.qkv_limit, dy);
  }
  if (p.is_normed(spec)) {
    const View rows = norm_rows(spec, dy);
    c.ops.rmsnorm_backward(c.stream, rows, norm_rows(spec, c.in(p.norm->raw)),
                           w.norm(p.norm->weight), row_vector(c.in(p.norm->rstd)), rows,
                           w.gradient(p.norm->weight));
  }
  w.add_gradient(dy, normed, p.weight, p.bias);
}

}  // namespace

void add_qkv_ports(const TaskShape& s, Access saved, std::vector<Port>& list) {
  const ModelSpec& spec = s.spec;
  const DType type = s.settings.activations;
  list.push_back(ports::token_ints(Value::positions, Access::read));
  for (const Value v : {Value::rope_cosine, Value::rope_sine}) {
    list.push_back({.value = v,
                    .access = Access::read,
                    .dtype = type,
                    .extra_rows = s.longest,
                    .cols = spec.head_dim / 2});
  }
  for (const Projection& p : {kQ, kK, kV}) {
    const int64_t heads = heads_of(spec, p), width = heads * spec.head_dim;
    if (p.is_normed(spec)) {
      list.push_back({.value = p.norm->raw,
                      .access = saved,
                      .dtype = type,
                      .rows_per_token = 1,
                      .cols = width});
      const int64_t norms = spec.qk_norm == QkNorm::whole ? 1 : heads;
      list.push_back(
          {.value = p.norm->rstd, .access = saved, .dtype = type, .rows_per_token = norms});
    }
    if (spec.qkv_limit > 0)
      list.push_back({.value = p.unclamped,
                      .access = saved,
                      .dtype = type,
                      .rows_per_token = 1,
                      .cols = width});
    const bool cached = s.cache_rows > 0 && p.out != Value::q;
    list.push_back({.value = p.out,
                    .access = cached ? Access::update : saved,
                    .dtype = type,
                    .rows_per_token = cached ? 0 : 1,
                    .extra_rows = cached ? s.cache_rows : 0,
                    .cols = width});
  }
}

void qkv_forward(const BodyContext& c, const AttentionWeights& w, ConstView normed) {
  forward(c, w, kQ, normed, c.out(Value::q));
  forward(c, w, kK, normed, c.out(Value::k).slice(c.batch.past, c.batch.tokens));
  forward(c, w, kV, normed, c.out(Value::v).slice(c.batch.past, c.batch.tokens));
}

void qkv_backward(const BodyContext& c, const AttentionWeights& w, View dq, View dk, View dv,
                  View normed) {
  backward(c, w, kQ, dq, normed);
  backward(c, w, kK, dk, normed);
  backward(c, w, kV, dv, normed);
  c.ops.linear_dgrad(c.stream, dq, w.linear(Slot::q, Slot::q_bias), normed, false);
  c.ops.linear_dgrad(c.stream, dk, w.linear(Slot::k, Slot::k_bias), normed, true);
  c.ops.linear_dgrad(c.stream, dv, w.linear(Slot::v, Slot::v_bias), normed, true);
}

}  // namespace hearth
