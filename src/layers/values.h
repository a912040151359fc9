// The values that tasks hand to each other. A planner turns each value into a buffer.
#pragma once

#include <cstdint>
#include <string_view>

namespace hearth {

/// Shapes: T tokens of a micro-batch, H hidden size, E experts, k experts per token, R = T * k
/// routed rows, I width of an expert or MLP, V vocabulary, S sequences. Activations are f32, in
/// gradient checks f64.
enum class Value : uint8_t {
  // Inputs of a step, filled before it runs.
  ids,                   // i32 [T]
  labels,                // i32 [T]; -100: not trained
  positions,             // i32 [T], from 0 in every sequence
  query_offsets,         // i32 [S + 1], rows of each sequence's queries
  key_offsets,           // i32 [S + 1], rows of each sequence's keys
  rope_cosine,           // [positions, head_dim / 2], the same in every step
  rope_sine,             // [positions, head_dim / 2], the same in every step
  trained_tokens,        // f64, of the whole step
  tokens,                // f64, of the whole step
  micro_tokens,          // f64, of the micro-batch
  micro_trained_tokens,  // f64, of the micro-batch
  dropout_key,           // f64, an integer below 2^53; only if adapters have dropout
  noise_key,             // f64, the same; only if embeddings have noise
  lr,                    // f64, the learning rate of the step
  update_step,           // f64, number of the update, from 1; of due ones 0: none is due
  due_clip,              // f64, `clip` of the step before, if its updates are due in this one
  due_finite,            // f64, its `finite`

  // Forward, of a layer and a micro-batch.
  residual,          // [T, H] input of the layer
  input_rstd,        // [T] 1 / rms of `residual`
  q_raw,             // [T, heads * d] before its norm
  k_raw,             // [T, kv_heads * d] before its norm
  q_rstd,            // [T * norms per token] 1 / rms of q_raw
  k_rstd,            // [T * norms per token] 1 / rms of k_raw
  q_unclamped,       // [T, heads * d] after its norm
  k_unclamped,       // [T, kv_heads * d] after its norm
  v_unclamped,       // [T, kv_heads * d]
  q,                 // [T, heads * d] after norm, clamp and rope
  k,                 // [T, kv_heads * d] after norm, clamp and rope; the key cache in decoding
  v,                 // [T, kv_heads * d] after the clamp; the value cache in decoding
  attention,         // [T, heads * d] output of attention, before the map `o`
  log_sum,           // [T, heads] log sum exp of the scores
  mid,               // [T, H] after attention's residual
  mid_rstd,          // [T] 1 / rms of `mid`
  normed,            // [T, H] what the MLP, the experts and the router read
  normed_sent,       // bf16 [T, H] for experts elsewhere whose products round it anyway
  normed_there,      // [T, H] the same as activations, where those experts are
  probs,             // [T, E] softmax of the router's logits
  choice,            // i32 [T, k] the chosen experts
  weight,            // [T, k] their combine weights
  router_counts,     // f64 [E] choices of each expert
  router_prob_sums,  // f64 [E] sum of probs over the tokens
  sampled_residual,  // [n, H] of evenly spaced tokens (layers/router_sample.h)
  sampled_normed,    // [n, H] of the same tokens
  sampled_probs,     // [n, E] of the same tokens
  router_log_sum,    // [T] log sum exp of the router's logits; only with a z-loss
  router_squares,    // f64, sum of the squares of router_log_sum
  split,             // i32 [E + places + 1] (SplitView); only if the experts are divided
  expert_position,   // i32 [E] of each expert in the split's order; only if they are divided. If an
                     // expert may be divided, i32 [E + 2]: then 0, and the number of its rows
  divided,           // i32 [4] (DividedView): the expert that is divided along its width, if any
  divided_weights,   // the columns of its maps that the device computes (layers/divided.h)
  divided_out,       // [T, H] of its rows, from the first: what these columns give
  route_offsets,     // i32 [E + 1] (RoutingView)
  route_source,      // i32 [R] (RoutingView)
  route_row_of,      // i32 [T, k] (RoutingView)
  row_weight,        // [R] combine weights in expert order
  guest_offsets,  // i32 [G * (E' + 1)] of ranks: the rows that rank g sends to this rank's E' experts
  guest_keys,     // f64 [G]: dropout_key of each rank of the group
  rows,           // [R, H] tokens in expert order; only if ranks share the experts
  fetched_experts,  // weights that another rank sends (layers/fetched_experts.h)
  gate,             // [R, I] of the experts, before silu
  up,               // [R, I] of the experts
  expert_out,       // [R, H]
  expert_sum,       // [T, H] of a place: the weighted sum of its part of expert_out
  // Of another rank's rows that this rank computes (a part of that rank): what `rows`, `route_source`,
  // `gate`, `up` and `expert_out` are of its own. At most R rows, from the first on.
  guest_rows,
  guest_source,
  guest_gate,
  guest_up,
  guest_out,
  mlp_gate,    // [T, I] of the dense MLP or the shared expert, before silu
  mlp_up,      // [T, I] of the dense MLP or the shared expert
  mlp_logits,  // [T] its sigmoid weighs the shared expert
  mlp_out,     // [T, H]

  // Head, of a micro-batch.
  loss,      // f64, sum over the trained tokens
  aux_loss,  // f64
  z_loss,    // f64
  dprobs,    // [MoE layers, E] gradient of the auxiliary loss
  logits,    // [1, V] of the last token, in decoding

  // Backward, of a layer and a micro-batch: d_X is the gradient of X.
  d_residual,          // [T, H]
  d_expert_out,        // [R, H], not yet weighted; only if ranks share the experts
  d_rows,              // [R, H]
  d_row_sum,           // [T, H] of a place: the sum of its part of d_rows
  d_row_weight,        // [R]
  d_guest_out,         // d_expert_out of another rank's rows
  guest_weight,        // their row_weight
  d_guest_rows,        // their d_rows
  d_guest_row_weight,  // their d_row_weight
  d_weight,            // [T, k]
  d_normed,            // [T, H]
  divided_gradient,    // of divided_weights (layers/divided.h)
  d_divided_rows,      // [T, H]: d_rows of these columns, from the first row of the divided expert
  d_divided_weight,    // [T]: their d_row_weight

  // Of a step.
  tensor_norms,  // f64 [trained tensors of a norm task]; its "layer" is the number of the task
  grad_norm,     // f64
  clip,          // f64, the factor of all gradients
  finite,        // f64, 1 if the step may update weights, else 0

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

/// What a value belongs to: a layer of a micro-batch, a micro-batch, or the step.
enum class Scope : uint8_t { layer, micro_batch, step };

struct ValueInfo {
  std::string_view name;
  Scope scope;
  bool given = false;       // an input: filled before the step, not by a task
  bool kept = false;        // a result: read after the step, so it is brought to the host
  bool host = false;        // always on the host: bodies read it themselves
  bool routed = false;      // a row per choice, by expert; parts of it can be at different places
  bool of_part = false;     // each place that computes experts of the layer writes one of its own
  bool of_group = false;    // one for the micro-batches of a group: the latest
  bool of_columns = false;  // its bytes are those of the columns that `divided` names
};
const ValueInfo& info_of(Value value);

}  // namespace hearth
