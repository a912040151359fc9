#include "layers/values.h"

#include <array>

namespace hearth {

namespace {

constexpr auto kInfo = [] {
  std::array<ValueInfo, kValues> table{};
  const auto set = [&](Value v, std::string_view name, Scope scope, bool given = false) {
    table[static_cast<size_t>(v)] = {name, scope, given};
  };
  const auto layer = [&](Value v, std::string_view name) { set(v, name, Scope::layer); };
  set(Value::ids, "ids", Scope::micro_batch, true);
  set(Value::labels, "labels", Scope::micro_batch, true);
  set(Value::positions, "positions", Scope::micro_batch, true);
  set(Value::query_offsets, "query_offsets", Scope::micro_batch, true);
  set(Value::key_offsets, "key_offsets", Scope::micro_batch, true);
  set(Value::micro_tokens, "micro_tokens", Scope::micro_batch, true);
  set(Value::micro_trained_tokens, "micro_trained_tokens", Scope::micro_batch, true);
  set(Value::dropout_key, "dropout_key", Scope::micro_batch, true);
  set(Value::noise_key, "noise_key", Scope::micro_batch, true);
  set(Value::rope_cosine, "rope_cosine", Scope::step, true);
  set(Value::rope_sine, "rope_sine", Scope::step, true);
  set(Value::trained_tokens, "trained_tokens", Scope::step, true);
  set(Value::tokens, "tokens", Scope::step, true);
  set(Value::lr, "lr", Scope::step, true);
  set(Value::update_step, "update_step", Scope::step, true);
  set(Value::due_clip, "due_clip", Scope::step, true);
  set(Value::due_finite, "due_finite", Scope::step, true);
  layer(Value::residual, "residual");
  layer(Value::input_rstd, "input_rstd");
  layer(Value::q_raw, "q_raw");
  layer(Value::k_raw, "k_raw");
  layer(Value::q_rstd, "q_rstd");
  layer(Value::k_rstd, "k_rstd");
  layer(Value::q_unclamped, "q_unclamped");
  layer(Value::k_unclamped, "k_unclamped");
  layer(Value::v_unclamped, "v_unclamped");
  layer(Value::q, "q");
  layer(Value::k, "k");
  layer(Value::v, "v");
  layer(Value::attention, "attention");
  layer(Value::log_sum, "log_sum");
  layer(Value::mid, "mid");
  layer(Value::mid_rstd, "mid_rstd");
  layer(Value::normed, "normed");
  layer(Value::normed_sent, "normed_sent");
  layer(Value::normed_there, "normed_there");
  layer(Value::probs, "probs");
  layer(Value::choice, "choice");
  layer(Value::weight, "weight");
  layer(Value::router_counts, "router_counts");
  layer(Value::router_prob_sums, "router_prob_sums");
  layer(Value::sampled_residual, "sampled_residual");
  layer(Value::sampled_normed, "sampled_normed");
  layer(Value::sampled_probs, "sampled_probs");
  layer(Value::router_log_sum, "router_log_sum");
  layer(Value::router_squares, "router_squares");
  layer(Value::split, "split");
  layer(Value::expert_position, "expert_position");
  layer(Value::divided, "divided");
  layer(Value::divided_weights, "divided_weights");
  layer(Value::divided_out, "divided_out");
  layer(Value::route_offsets, "route_offsets");
  layer(Value::route_source, "route_source");
  layer(Value::route_row_of, "route_row_of");
  layer(Value::row_weight, "row_weight");
  layer(Value::guest_offsets, "guest_offsets");
  layer(Value::guest_keys, "guest_keys");
  layer(Value::guest_rows, "guest_rows");
  layer(Value::guest_source, "guest_source");
  layer(Value::guest_gate, "guest_gate");
  layer(Value::guest_up, "guest_up");
  layer(Value::guest_out, "guest_out");
  layer(Value::d_guest_out, "d_guest_out");
  layer(Value::guest_weight, "guest_weight");
  layer(Value::d_guest_rows, "d_guest_rows");
  layer(Value::d_guest_row_weight, "d_guest_row_weight");
  layer(Value::rows, "rows");
  layer(Value::fetched_experts, "fetched_experts");
  layer(Value::gate, "gate");
  layer(Value::up, "up");
  layer(Value::expert_out, "expert_out");
  layer(Value::expert_sum, "expert_sum");
  layer(Value::mlp_gate, "mlp_gate");
  layer(Value::mlp_up, "mlp_up");
  layer(Value::mlp_logits, "mlp_logits");
  layer(Value::mlp_out, "mlp_out");
  set(Value::loss, "loss", Scope::micro_batch);
  set(Value::aux_loss, "aux_loss", Scope::micro_batch);
  set(Value::z_loss, "z_loss", Scope::micro_batch);
  set(Value::dprobs, "dprobs", Scope::micro_batch);
  set(Value::logits, "logits", Scope::step);
  layer(Value::d_residual, "d_residual");
  layer(Value::d_expert_out, "d_expert_out");
  layer(Value::d_rows, "d_rows");
  layer(Value::d_row_sum, "d_row_sum");
  layer(Value::d_row_weight, "d_row_weight");
  layer(Value::d_weight, "d_weight");
  layer(Value::d_normed, "d_normed");
  layer(Value::divided_gradient, "divided_gradient");
  layer(Value::d_divided_rows, "d_divided_rows");
  layer(Value::d_divided_weight, "d_divided_weight");
  layer(Value::tensor_norms, "tensor_norms");
  set(Value::grad_norm, "grad_norm", Scope::step);
  set(Value::clip, "clip", Scope::step);
  set(Value::finite, "finite", Scope::step);
  layer(Value::tmp_normed, "tmp_normed");
  layer(Value::tmp_mid, "tmp_mid");
  layer(Value::tmp_attention, "tmp_attention");
  layer(Value::tmp_q, "tmp_q");
  layer(Value::tmp_k, "tmp_k");
  layer(Value::tmp_v, "tmp_v");
  layer(Value::tmp_logits, "tmp_logits");
  layer(Value::tmp_h, "tmp_h");
  layer(Value::tmp_rstd, "tmp_rstd");
  layer(Value::tmp_dh, "tmp_dh");
  layer(Value::tmp_hidden, "tmp_hidden");
  for (const Value v : {Value::loss, Value::aux_loss, Value::z_loss, Value::router_counts,
                        Value::logits, Value::grad_norm, Value::clip, Value::finite}) {
    table[static_cast<size_t>(v)].kept = true;
  }
  for (const Value v :
       {Value::micro_tokens, Value::micro_trained_tokens, Value::dropout_key, Value::noise_key,
        Value::trained_tokens, Value::tokens, Value::lr, Value::update_step, Value::split,
        Value::divided, Value::due_clip, Value::due_finite, Value::grad_norm, Value::clip,
        Value::finite, Value::guest_keys}) {
    table[static_cast<size_t>(v)].host = true;
  }
  for (const Value v : {Value::row_weight, Value::rows, Value::gate, Value::up, Value::expert_out,
                        Value::d_expert_out, Value::d_rows, Value::d_row_weight}) {
    table[static_cast<size_t>(v)].routed = true;
  }
  for (const Value v :
       {Value::expert_sum, Value::d_row_sum, Value::guest_rows, Value::guest_source,
        Value::guest_gate, Value::guest_up, Value::guest_out, Value::d_guest_out,
        Value::guest_weight, Value::d_guest_rows, Value::d_guest_row_weight, Value::normed_there}) {
    table[static_cast<size_t>(v)].of_part = true;
  }
  for (const Value v : {Value::divided_weights, Value::divided_gradient}) {
    table[static_cast<size_t>(v)].of_group = true;
    table[static_cast<size_t>(v)].of_columns = true;
  }
  table[static_cast<size_t>(Value::fetched_experts)].of_group = true;
  return table;
}();

constexpr bool complete() {
  for (const ValueInfo& info : kInfo) {
    if (info.name.empty()) return false;
  }
  return true;
}
static_assert(complete(), "every value has a name and a scope");

}  // namespace

const ValueInfo& info_of(Value value) { return kInfo[static_cast<size_t>(value)]; }

}  // namespace hearth
