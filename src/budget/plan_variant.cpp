#include "budget/plan_variant.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hearth {

void PlanVariant::cut_micro_batch(int64_t sequences) {
  if (sequences == config.micro_batch) return;
  config.grad_accum *= config.micro_batch / sequences;
  config.micro_batch = sequences;
  add(Setting::micro_batch, config.micro_batch);
  add(Setting::grad_accum, config.grad_accum);
  request.micro_batches = config.grad_accum / request.shards.computing();
  request.tokens = std::min(request.tokens, config.micro_batch * config.seq_len);
  request.eval_tokens = std::min(request.eval_tokens, config.micro_batch * config.seq_len);
}

void PlanVariant::cut_sequences(int64_t length) {
  const int64_t most = config.micro_batch * length;
  // Rows that are packed anew may fill a micro-batch better than they did.
  request.tokens = config.packing ? most : std::min(request.tokens, most);
  if (request.eval_tokens > 0) {
    request.eval_tokens = config.packing ? most : std::min(request.eval_tokens, most);
  }
  request.longest = std::min(request.longest, length);
  if (request.decode_tokens > 0) {  // samples: a prompt, and what is written behind it
    const int64_t written = request.cache_rows - request.decode_tokens;
    request.decode_tokens = std::min(request.decode_tokens, length);
    request.cache_rows = request.decode_tokens + written;
    request.longest = std::max(request.longest, request.cache_rows);
  }
  config.seq_len = length;
  add(Setting::seq_len, length);
}

void PlanVariant::recompute_blocks() {
  config.recompute = Recompute::blocks;
  request.recompute = true;
  add(spelled(Setting::recompute, "blocks"));
}

void PlanVariant::drop_rounded_weights() {
  config.compute = ComputeChoice::f32;
  add(spelled(Setting::compute_dtype, "f32"));
  remake();
}

bool PlanVariant::freeze(const std::string& glob) {
  config.freeze.push_back(glob);
  // The list as a whole: it may stand in place of the one that was given.
  for (const std::string& each : config.freeze) add(spelled(Setting::freeze, "'" + each + "'"));
  return remake();
}

bool PlanVariant::train_only(const std::string& glob) {
  config.trainable = {glob};
  add(spelled(Setting::trainable, "'" + glob + "'"));
  return remake();
}

bool PlanVariant::train_adapters() {
  config.method = Method::lora;
  add(spelled(Setting::method, "lora"));
  return remake();
}

bool PlanVariant::cut_expert_rank(int64_t rank) {
  if (!config.expert_rank || *config.expert_rank <= rank) return false;
  config.expert_rank = rank;
  add(Setting::expert_r, rank);
  return remake();
}

bool PlanVariant::cut_rank(int64_t rank) {
  if (config.lora_rank <= rank) return false;
  const double part = static_cast<double>(rank) / static_cast<double>(config.lora_rank);
  config.lora_alpha *= config.rslora ? std::sqrt(part) : part;
  config.lora_rank = rank;
  add(Setting::lora_r, rank);
  add(spelled(Setting::lora_alpha, fmt::format("{}", config.lora_alpha)));
  return remake();
}

bool PlanVariant::choose_experts(double percent) {
  if (config.experts_top > 0 && config.experts_top <= percent) return false;
  config.experts_top = percent;
  add(spelled(Setting::experts, fmt::format("top:{}%", percent)));
  return remake();
}

bool PlanVariant::adapt_attention_alone() {
  if (config.lora_targets == std::vector<std::string>{"attention"}) return false;
  config.lora_targets = {"attention"};
  add(spelled(Setting::lora_targets, "attention"));
  return remake();
}

bool PlanVariant::remake() {
  try {
    model = std::make_shared<const TrainedModel>(trained_model(model->opened, config));
    return true;
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    return false;
  }
}

}  // namespace hearth
