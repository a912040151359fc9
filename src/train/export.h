// `export --from-state`: saved state as a checkpoint.
#pragma once

#include <string>

#include "train/reporter.h"

namespace hearth {

struct ExportConfig {
  std::string from_state;  // a state, or a run directory: its newest whole state
  std::string model;       // the base; empty: where the run found it
  std::string out;         // must not exist
  bool follow_links = false;
};

/// Writes the trained weights of the state and the frozen ones of its base in the names, types,
/// shapes and shard plan of the base, read back before they appear: the bytes that a run ending
/// there writes. Takes memory of the size of the checkpoint. Usage error when `out` exists; input
/// error for a base that is missing or not the one that was trained; storage error for damaged
/// state. Inputs never change.
void export_state(const ExportConfig& config, Reporter& reporter);

}  // namespace hearth
