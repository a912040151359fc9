// A run with some changed options, for the search for a plan that fits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/setting.h"
#include "budget/plan.h"
#include "setup/config.h"

namespace hearth {

/// `options` is the change in the user's spelling. `config` and `request` include it.
struct PlanVariant {
  std::string options;
  TrainConfig config;
  PlanRequest request;
  ModelPlaces places;
  /// The model that `config` trains, made as in a run. Variants that train the same tensors share
  /// it.
  std::shared_ptr<const TrainedModel> model;

  void add(const std::string& option) { options += (options.empty() ? "" : " ") + option; }
  void add(Setting setting, int64_t value) { add(spelled(setting, std::to_string(value))); }

  /// Reduces the micro-batch to `sequences`, with the same number of tokens per step.
  void cut_micro_batch(int64_t sequences);
  void cut_sequences(int64_t length);
  void recompute_blocks();
  void drop_rounded_weights();

  /// The functions below change what is trained, and remake the model. False if a run would refuse
  /// the options.
  bool freeze(const std::string& glob);
  bool train_only(const std::string& glob);
  bool train_adapters();
  /// Only of a run that gives the experts a rank of their own.
  bool cut_expert_rank(int64_t rank);
  /// Alpha falls with the rank, so that the scale of the pairs stays.
  bool cut_rank(int64_t rank);
  bool choose_experts(double percent);
  bool adapt_attention_alone();
  /// Makes `model` from `config`.
  bool remake();
};

}  // namespace hearth
