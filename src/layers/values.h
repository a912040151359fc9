// The values that tasks hand to each other. A planner makes each into a buffer.
#pragma once

#include <cstdint>
#include <string_view>

namespace hearth {

/// T tokens, H hidden, R = T * k routed rows, I width of an expert or MLP, E experts.
enum class Value : uint8_t {
  // Given before a step.
  ids,
  labels,
  positions,  // i32 [T]
  query_offsets,
  key_offsets,  // i32 [sequences + 1]
  rope_cosine,
  rope_sine,  // [positions, head_dim / 2], once a run
  trained_tokens,
  tokens,  // f64: of the whole step
  micro_tokens,
  micro_trained_tokens,  // f64: of the micro-batch
  dropout_key,           // f64, an integer below 2^53: where adapters have dropout
  lr,
  update_step,  // f64

  // Forward, a layer and micro-batch.
  residual,    // [T, H] entering the layer
  input_rstd,  // [T]
  q_raw,
  k_raw,
  q_rstd,
  k_rstd,  // before their norms
  q_unclamped,
  k_unclamped,
  v_unclamped,  // after the norms
  q,
  k,
  v,  // [T, heads * d] after norm, clamp and rope; the cache in decoding
  attention,
  log_sum,   // [T, heads * d], [T, heads]
  mid,       // [T, H] after attention's residual
  mid_rstd,  // [T]
  normed,    // [T, H] what MLP, experts and gate read
  probs,
  choice,
  weight,  // [T, E], i32 [T, k], [T, k]
  router_counts,
  router_prob_sums,  // f64 [E]
  router_log_sum,    // [T] where there is a z-loss
  router_squares,    // f64, sum of their squares
  route_offsets,
  route_source,
  route_row_of,
  row_weight,  // RoutingView, [R]
  rows,        // [R, H] tokens in expert order
  gate,
  up,          // [R, I]
  expert_out,  // [R, H]
  mlp_gate,
  mlp_up,      // [T, I] of the dense MLP or the shared expert
  mlp_logits,  // [T] before the sigmoid that weighs the shared expert
  mlp_out,     // [T, H]

  // Head.
  loss,
  aux_loss,
  z_loss,  // f64, a micro-batch
  dprobs,  // [MoE layers, E] gradient of the auxiliary loss, a micro-batch
  logits,  // [1, V]

  // Backward, a layer and micro-batch.
  d_residual,  // [T, H] gradient of `residual`
  d_expert_out,
  d_rows,  // [R, H]
  d_row_weight,
  d_weight,  // [R], [T, k]
  d_normed,  // [T, H]

  // Step.
  tensor_norms,  // f64 [trained tensors of a place]; of the "layer" that is the place's number
  grad_norm,
  clip,
  finite,  // f64

  // Temporaries of one task.
  tmp_normed,
  tmp_mid,
  tmp_attention,
  tmp_q,
  tmp_k,
  tmp_v,
  tmp_logits,
  tmp_h,
  tmp_dh,
  tmp_rstd,
  tmp_hidden,
};
inline constexpr int kValues = static_cast<int>(Value::tmp_hidden) + 1;

/// To what a value belongs: a layer of a micro-batch, a micro-batch, or the step.
enum class Scope : uint8_t { layer, micro_batch, step };

struct ValueInfo {
  std::string_view name;
  Scope scope;
  bool given = false;  // written before the step, not by a task
  bool kept = false;   // read after the step: at the end of the list it is on the host
  bool host = false;   // on the host wherever the task runs: bodies read it themselves
};
const ValueInfo& info_of(Value value);

}  // namespace hearth
