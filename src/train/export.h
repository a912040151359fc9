// `export`: saved state as a checkpoint or an adapter, or a model with its adapter merged.
#pragma once

#include <optional>
#include <string>

#include "peft/adapter.h"
#include "setup/reporter.h"

namespace hearth {

struct ExportConfig {
  std::string from_state;                    // a state, or a run directory: its newest whole state
  std::string model;                         // the base; empty: where the run found it
  std::string out;                           // must not exist
  std::optional<AdapterLayout> layout = {};  // of an adapter; unset: the run's
  bool follow_links = false;
  std::string model_name = {};  // the base as the user gave it; empty: as `model`
};

struct MergeConfig {
  std::string model, adapter;
  std::string out;  // must not exist
  bool accept_other_base = false;
  bool fused_as_peft = false;
  bool follow_links = false;
};

/// Writes W + scale * B A for every adapted matrix of the model, all else as it is, in the names,
/// types, shapes and shard plan of the model, verified before it appears. Takes memory of the
/// adapter and some pieces. Errors as with export_state. Inputs never change.
void export_merged(const MergeConfig& config, Reporter& reporter);

/// Writes the trained weights of the state and the frozen ones of its base in the names, types,
/// shapes and shard plan of the base, read back before they appear: the bytes that a run ending
/// there writes. Takes memory of the size of the checkpoint. The state of a run that trained
/// adapters becomes a PEFT directory, again the bytes that the run would write; that takes memory of
/// what was trained. Usage error when `out` exists; input
/// error for a base that is missing or not the one that was trained; storage error for damaged
/// state. Inputs never change.
void export_state(const ExportConfig& config, Reporter& reporter);

}  // namespace hearth
