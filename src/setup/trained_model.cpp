#include "setup/trained_model.h"

#include <algorithm>

#include "base/glob.h"
#include "peft/targets.h"
#include "setup/compute_choice.h"
#include "setup/expert_count.h"

namespace hearth {

void select_trainable(ParameterTable& table, const PublishedLayout& layout, bool lora,
                      const std::vector<std::string>& trainable,
                      const std::vector<std::string>& freeze) {
  const auto mark = [&](const std::vector<std::string>& globs, const char* option, bool value) {
    for (const std::string& glob : globs) {
      bool matched = false;
      for (const PublishedTensor& tensor : layout.tensors()) {
        if (!glob_matches(glob, tensor.name)) continue;
        for (const TensorId id : tensor.parts) table.tensor(id).trainable = value;
        matched = true;
      }
      if (!matched) {
        throw usage_error(std::string(option) + " " + quoted(glob) +
                          ": no tensor of the model has such a name (`hearth inspect` lists them)");
      }
    }
  };
  for (Tensor& t : table.tensors()) t.trainable = !lora && (trainable.empty() || !freeze.empty());
  mark(freeze, "--freeze", false);
  mark(trainable, "--trainable", true);
  if (!lora && trained_parameters(table) == 0) {
    throw usage_error("--freeze: every tensor is frozen, nothing is left to train");
  }
}

const char* name_of(Compute compute) { return compute == Compute::bf16 ? "bf16" : "f32"; }

int64_t all_parameters(const ParameterTable& table) {
  int64_t n = 0;
  for (const Tensor& t : table.tensors()) n += t.size();
  return n;
}

int64_t trained_parameters(const ParameterTable& table) {
  int64_t n = 0;
  for (const Tensor& t : table.tensors()) n += t.trainable ? t.size() : 0;
  return n;
}

Compute resolved_compute(ComputeChoice choice, const ParameterTable& table,
                         const std::vector<ComputePlace>& places, const ModelPlaces& of_model) {
  const bool stored_bf16 = std::any_of(table.tensors().begin(), table.tensors().end(),
                                       [](const Tensor& t) { return t.stored == DType::bf16; });
  return choose_compute(choice, stored_bf16, has_bf16(places, of_model));
}

TrainedModel untrained_model(std::shared_ptr<const OpenedModel> opened, const RunConfig& config) {
  TrainedModel model{std::move(opened), {}, {}, config.compute};
  model.table = model.opened->base;
  model.settings.aux_mode = config.aux_mode;
  model.settings.partial_sums = config.partial_sums;
  if (model.opened->adapter) model.opened->adapter->add_to(model.table);
  return model;
}

namespace {

AdapterOptions adapter_options(const TrainConfig& lora, const ExpertChoice& experts) {
  AdapterOptions options;
  options.rank = lora.lora_rank;
  options.expert_rank = lora.expert_rank.value_or(lora.lora_rank);
  options.alpha = lora.lora_alpha;
  options.rslora = lora.rslora;
  options.targets = lora.lora_targets;
  options.freeze = lora.freeze;
  options.experts = experts;
  return options;
}

void require_adapted_experts(const ParameterTable& table, const std::string& option) {
  const bool any = std::any_of(table.blocks().begin(), table.blocks().end(), [&](const Block& b) {
    return b.kind == BlockKind::adapter && table.block(b.base).kind == BlockKind::expert;
  });
  if (any) return;
  throw usage_error(option + ": no expert gets an adapter, as --lora-targets names none of this " +
                    "model; leave " + option + " out");
}

void require_compatible(const TrainConfig& config, bool with_adapter) {
  const bool lora = config.method == Method::lora;
  if (with_adapter && !lora) {
    throw usage_error(
        "--adapter: adapters are trained with --method lora; `hearth export` adds "
        "one to a model that is then trained whole");
  }
  if (with_adapter && !config.freeze.empty()) {
    throw usage_error(
        "--freeze: with --adapter all of its pairs are trained; begin a new adapter for others");
  }
  if (config.experts_top > 0 && (!lora || with_adapter)) {
    throw usage_error(lora ? "--experts: with --adapter all of its pairs are trained; leave it out"
                           : "--experts chooses experts for adapters; give --method lora");
  }
}

ParameterTable trained_table(const OpenedModel& opened, const TrainConfig& config,
                             const ExpertChoice& experts) {
  ParameterTable table = opened.base;
  const bool lora = config.method == Method::lora;
  select_trainable(table, opened.layout, lora, config.trainable, config.freeze);
  if (opened.adapter) {
    opened.adapter->add_to(table);
  } else if (lora) {
    add_adapters(table, opened.layout, adapter_options(config, experts));
    if (!experts.empty()) require_adapted_experts(table, "--experts");
    if (config.expert_rank) require_adapted_experts(table, "--expert-r");
  }
  if (lora && opened.checkpoint) require_storable(table, opened.checkpoint->family());
  for (Tensor& t : table.tensors()) t.decayed |= config.decay_all;
  return table;
}

RunSettings training_settings(const TrainConfig& config, const OpenedModel& opened,
                              const ParameterTable& table) {
  const bool router_trains =
      std::any_of(table.tensors().begin(), table.tensors().end(),
                  [](const Tensor& t) { return t.trainable && t.slot == Slot::router; });
  RunSettings s;
  s.aux_mode = config.aux_mode;
  s.z_loss = config.router_z_loss;
  s.aux_loss = config.router_aux_loss.value_or(router_trains ? opened.spec.aux_loss : 0);
  s.adamw.beta1 = config.beta1;
  s.adamw.beta2 = config.beta2;
  s.adamw.eps = config.eps;
  s.adamw.weight_decay = config.weight_decay;
  s.max_grad_norm = config.max_grad_norm;
  s.lora_dropout = config.method == Method::lora ? config.lora_dropout : 0;
  s.lora_plus = config.method == Method::lora ? config.lora_plus_ratio : 1;
  s.noise = config.neftune;
  s.partial_sums = config.partial_sums;
  s.seed = config.seed;
  return s;
}

}  // namespace

TrainedModel trained_model(std::shared_ptr<const OpenedModel> opened, const TrainConfig& config,
                           const ExpertChoice& experts) {
  require_compatible(config, opened->adapter != nullptr);
  ParameterTable table = trained_table(*opened, config, experts);
  const RunSettings settings = training_settings(config, *opened, table);
  return {std::move(opened), std::move(table), settings, config.compute};
}

TrainedModel trained_model(std::shared_ptr<const OpenedModel> opened, const TrainConfig& config) {
  const ExpertChoice experts = config.experts_top > 0
                                   ? placeholder_experts(opened->spec, config.experts_top)
                                   : ExpertChoice{};
  return trained_model(std::move(opened), config, experts);
}

}  // namespace hearth
