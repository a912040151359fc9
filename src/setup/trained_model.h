// The second stage of a run: marks what is trained in an opened model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/adapters.h"
#include "modes/hot_experts.h"
#include "setup/opened_model.h"

namespace hearth {

/// Nothing is placed or bound to memory yet.
struct TrainedModel {
  std::shared_ptr<const OpenedModel> opened;
  ParameterTable table;  // with its adapters; trained tensors are marked
  RunSettings settings;  // all but the compute type, which depends on the placement
  ComputeChoice compute = ComputeChoice::automatic;
  ExpertCounts popularity = {};  // of a sample of the data; empty: unknown
};

/// The model and its adapter, for a run without training.
TrainedModel untrained_model(std::shared_ptr<const OpenedModel> opened, const RunConfig& config);

/// Marks trained tensors, adds adapters, and sets the optimizer and the auxiliary losses.
/// `experts`: experts that get adapters (empty: all). Usage errors: a glob that matches nothing,
/// nothing left to train, options that exclude each other.
TrainedModel trained_model(std::shared_ptr<const OpenedModel> opened, const TrainConfig& config,
                           const ExpertChoice& experts);
/// The same before the choice of --experts is known. Uses placeholder_experts, which has the same
/// sizes.
TrainedModel trained_model(std::shared_ptr<const OpenedModel> opened, const TrainConfig& config);

/// Starts with everything trainable, freezes what `freeze` matches, then re-enables what
/// `trainable` matches. With only `trainable` set, or with adapters (`lora`), trains only what
/// `trainable` matches. Globs match names in the checkpoint; a match of fused experts selects all
/// experts of the layer.
void select_trainable(ParameterTable& table, const PublishedLayout& layout, bool lora,
                      const std::vector<std::string>& trainable,
                      const std::vector<std::string>& freeze);

/// The compute type of a run at these places. `auto` is bf16 if the hardware of every place has
/// bf16 products and the checkpoint is stored in bf16.
Compute resolved_compute(ComputeChoice choice, const ParameterTable& table,
                         const std::vector<ComputePlace>& places, const ModelPlaces& of_model);

/// The name of a compute type in reports and in a run's identity.
const char* name_of(Compute compute);

/// Number of parameters of the model and its adapters.
int64_t all_parameters(const ParameterTable& table);
/// Number of trained parameters.
int64_t trained_parameters(const ParameterTable& table);

}  // namespace hearth
