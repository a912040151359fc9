#include "layers/router.h"

#include "layers/kinds.h"
#include "layers/linear.h"
#include "layers/router_sample.h"

namespace hearth {

namespace {

LinearView router_of(const BodyContext& c) {
  return linear_of(c, c.table.find_block(BlockKind::router, c.layer), Slot::router, std::nullopt,
                   c.settings.router_compute());
}

bool has_z_loss(const RunSettings& settings, Pass pass) {
  return settings.z_loss != 0 && pass != Pass::decode;
}

}  // namespace

void add_router_ports(const TaskShape& s, Access saved, std::vector<Port>& list) {
  const int64_t k = s.spec.experts_per_token, experts = s.spec.experts;
  const DType type = s.settings.activations;
  list.push_back({.value = Value::probs,
                  .access = saved,
                  .dtype = type,
                  .rows_per_token = 1,
                  .cols = experts});
  list.push_back({.value = Value::choice,
                  .access = saved,
                  .dtype = DType::i32,
                  .rows_per_token = 1,
                  .cols = k});
  list.push_back({.value = Value::tmp_logits,
                  .access = Access::temporary,
                  .dtype = type,
                  .rows_per_token = 1,
                  .cols = experts});
  const bool z_loss = has_z_loss(s.settings, s.pass);
  if (z_loss)
    list.push_back(
        {.value = Value::router_log_sum, .access = saved, .dtype = type, .rows_per_token = 1});
  if (s.phase == Phase::backward) {
    if (z_loss) list.push_back(ports::scalar(Value::tokens, Access::read));
    list.push_back({.value = Value::d_weight,
                    .access = Access::read,
                    .dtype = type,
                    .rows_per_token = 1,
                    .cols = k});
    list.push_back({.value = Value::dprobs,
                    .access = Access::read,
                    .dtype = type,
                    .extra_rows = s.spec.moe_layers(),
                    .cols = experts});
    return;
  }
  list.push_back({.value = Value::weight,
                  .access = Access::write,
                  .dtype = type,
                  .rows_per_token = 1,
                  .cols = k});
  for (const Value v : {Value::router_counts, Value::router_prob_sums}) {
    list.push_back({.value = v,
                    .access = Access::write,
                    .dtype = DType::f64,
                    .extra_rows = 1,
                    .cols = experts});
  }
  if (s.samples != SampledRows::none && s.phase == Phase::forward) {
    add_router_sample_ports(s, Access::write, list);
  }
  if (z_loss)
    list.push_back({.value = Value::router_squares,
                    .access = Access::write,
                    .dtype = DType::f64,
                    .extra_rows = 1});
}

void router_forward(const BodyContext& c) {
  const View logits = c.out(Value::tmp_logits);
  c.ops.linear_forward(c.stream, c.in(Value::normed), router_of(c), logits);
  c.ops.router_forward(c.stream, logits, c.spec.normalize_weights, c.out(Value::probs),
                       c.out(Value::choice), c.out(Value::weight));
  c.ops.router_sums(c.stream, c.in(Value::probs), c.in(Value::choice), c.out(Value::router_counts),
                    c.out(Value::router_prob_sums));
  if (c.has(Value::sampled_normed)) {
    take_sample(c, c.in(Value::normed), c.out(Value::sampled_normed));
  }
  if (c.has(Value::sampled_probs)) {
    take_sample(c, c.in(Value::probs), c.out(Value::sampled_probs));
  }
  if (has_z_loss(c.settings, c.pass)) {
    c.ops.router_z_forward(c.stream, logits, c.out(Value::router_log_sum),
                           c.out(Value::router_squares));
  }
}

void router_backward(const BodyContext& c, View d_normed) {
  const View d_logits = c.out(Value::tmp_logits);
  int64_t moe_index = 0;
  for (int32_t l = 0; l < c.layer; ++l) moe_index += c.spec.moe[static_cast<size_t>(l)];
  const ConstView dprobs =
      c.settings.aux_loss != 0 ? c.in(Value::dprobs).slice(moe_index, 1) : ConstView{};
  c.ops.router_backward(c.stream, c.in(Value::d_weight), c.in(Value::probs), c.in(Value::choice),
                        c.spec.normalize_weights, dprobs, d_logits);
  if (has_z_loss(c.settings, c.pass)) {
    // A mean over the step's tokens and the layers with experts.
    const double scale =
        c.settings.z_loss / (static_cast<double>(c.spec.moe_layers()) * c.scalar(Value::tokens));
    c.ops.router_z_backward(c.stream, c.in(Value::router_log_sum), c.in(Value::probs), scale,
                            d_logits);
  }
  const LinearView router = router_of(c);
  add_linear_gradient(c, c.table.find_block(BlockKind::router, c.layer), Slot::router, std::nullopt,
                      router, d_logits, c.in(Value::normed));
  c.ops.linear_dgrad(c.stream, d_logits, router, d_normed, true);
}

}  // namespace hearth
