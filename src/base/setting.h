// User settings that messages name. Lower rooms name a setting by this enum. Only tools and
// src/setup know how the user writes it (`--seq-len`).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

enum class Setting : uint8_t {
  accept_other_base,
  adapter,
  adapter_layout,
  chat_template,
  columns,
  compute_dtype,
  cpu_memory,
  data,
  devices,
  divide_experts,
  epochs,
  eval_at_start,
  eval_data,
  expert_r,
  experts,
  format,
  freeze,
  follow_links,
  gpu_memory,
  grad_accum,
  json,
  logical_shards,
  lora_alpha,
  lora_r,
  lora_targets,
  lr,
  machine,
  max_new_tokens,
  method,
  micro_batch,
  model,
  no_special_in_content,
  out,
  packing,
  parallel,
  plan,
  predictor,
  prompt,
  rank_devices,
  rank_links,
  recompute,
  replay_decisions,
  resume,
  seed,
  seq_len,
  steps,
  system,
  template_args,
  template_date,
  thread_ranks,
  expert_ranks,
  attention_ranks,
  expert_shift,
  levels,
  domains,
  kept_layers,
  tokenizer,
  trace,
  train_on,
  trainable,
  val_size,
  warmup,
  wire,
};
inline constexpr int kSettings = static_cast<int>(Setting::wire) + 1;

/// The setting in a message: "--seq-len" in the program; plain words ("the sequence length") if
/// `spell_settings_by` was not called.
std::string spelled(Setting setting);
/// With a value: "--train-on last".
std::string spelled(Setting setting, std::string_view value);

/// Sets how settings are written; null: plain words. Call once, before starting threads.
void spell_settings_by(std::string (*spell)(Setting));

}  // namespace hearth
