// `export`: writes saved state as a checkpoint or an adapter, or merges an adapter into its model.
#pragma once

#include <optional>
#include <string>

#include "peft/adapter.h"
#include "setup/reporter.h"

namespace hearth {

struct ExportConfig {
  std::string from_state;  // a state, or a run directory for its newest intact state
  std::string model;       // the base; empty: the run's --model
  std::string out;         // must not exist
  std::optional<AdapterLayout> layout = {};  // for an adapter; unset: the run's
  bool follow_links = false;
  std::string model_name = {};  // the base as the user named it; empty: `model`
};

struct MergeConfig {
  std::string model, adapter;
  std::string out;  // must not exist
  bool accept_other_base = false;
  bool fused_as_peft = false;
  bool follow_links = false;
  std::string model_name = {};  // the base as the user named it; empty: `model`
};

/// Writes W + scale * B A for every adapted matrix and copies all else, with the names, types,
/// shapes and shards of the model. Verifies the result before it appears. Memory: the adapter and
/// some buffers. Errors as in export_state. Never changes inputs.
void export_merged(const MergeConfig& config, Reporter& reporter);

/// Writes the result that the run would write if it ended at this state.
/// Full runs: trained weights of the state and frozen weights of the base, with the names, types,
/// shapes and shards of the base. Memory: the size of the checkpoint.
/// Adapter runs: a PEFT directory. Memory: the trained tensors.
/// Reads the result back before it appears. Usage error if `out` exists; input error if the base is
/// missing or not the trained one; storage error for a damaged state. Never changes inputs.
void export_state(const ExportConfig& config, Reporter& reporter);

}  // namespace hearth
