// The second stage of a run: what is trained of an opened model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/adapters.h"
#include "setup/opened_model.h"

namespace hearth {

/// Nothing is placed or bound to memory yet.
struct TrainedModel {
  std::shared_ptr<const OpenedModel> opened;
  ParameterTable table;  // with its adapters; trained tensors are marked
  RunSettings settings;  // all but the compute type, which depends on the placement
  ComputeChoice compute = ComputeChoice::automatic;
};

/// The model as it is run without training, with its adapter.
TrainedModel untrained_model(std::shared_ptr<const OpenedModel> opened, const RunConfig& config);

/// Marks what is trained, adds adapters, and sets the optimizer and the auxiliary losses. `experts`:
/// those that get adapters (empty: all). Usage errors for globs that match nothing, for freezing
/// everything, and for options that exclude each other.
TrainedModel trained_model(std::shared_ptr<const OpenedModel> opened, const TrainConfig& config,
                           const ExpertChoice& experts);
/// The same before the experts of --experts are known: as many, the first of each layer. Sizes are
/// those of the real choice.
TrainedModel trained_model(std::shared_ptr<const OpenedModel> opened, const TrainConfig& config);

/// Starts with everything trainable, freezes what `freeze` matches, then re-enables what `trainable`
/// matches. With `trainable` alone, and with adapters (`lora`), only what it matches is trained.
/// Globs see the names of the checkpoint: one that matches fused experts matches all experts of that
/// layer.
void select_trainable(ParameterTable& table, const PublishedLayout& layout, bool lora,
                      const std::vector<std::string>& trainable,
                      const std::vector<std::string>& freeze);

/// The compute type of a run with this placement: `auto` takes bf16 if each of its places has bf16
/// products in hardware and the checkpoint is stored in bf16.
Compute resolved_compute(ComputeChoice choice, const ParameterTable& table,
                         const std::vector<ComputePlace>& places, const Placement& placement);

/// The name of the compute type in reports and in the identity of a run.
const char* name_of(Compute compute);

/// Parameters of the model and of its adapters.
int64_t all_parameters(const ParameterTable& table);
/// Parameters that are trained.
int64_t trained_parameters(const ParameterTable& table);

}  // namespace hearth
