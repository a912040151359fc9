// A run with some options changed, for the search for a run that fits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/setting.h"
#include "budget/plan.h"
#include "setup/config.h"

namespace hearth {

/// `options` is the change as the user writes it; `config` and `request` have it.
struct PlanVariant {
  std::string options;
  TrainConfig config;
  PlanRequest request;
  Placement placement;
  /// What is trained with `config`, made by the function that a run calls; shared by variants that
  /// train the same.
  std::shared_ptr<const TrainedModel> model;

  void add(const std::string& option) { options += (options.empty() ? "" : " ") + option; }
  void add(Setting setting, int64_t value) { add(spelled(setting, std::to_string(value))); }

  /// As many tokens per step in micro-batches of `sequences`.
  void cut_micro_batch(int64_t sequences);
  void cut_sequences(int64_t length);
  void recompute_blocks();
  void drop_rounded_weights();

  /// These change what is trained, and make the model again. False: a run refuses the options.
  bool freeze(const std::string& glob);
  bool train_only(const std::string& glob);
  bool train_adapters();
  bool cut_expert_rank(int64_t rank);
  bool cut_rank(int64_t rank);
  bool choose_experts(double percent);
  bool adapt_attention_alone();
  /// Makes `model` by `config`.
  bool remake();
};

}  // namespace hearth
