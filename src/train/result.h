// The result of a run: `model/` of a full run, `adapter/` of a LoRA run.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_card.h"
#include "record/run_directory.h"
#include "setup/reporter.h"

namespace hearth {

/// Writes the trained tensors of the table as the result in the directory. An earlier result stays
/// until the new one is complete, which then replaces it. `changes`: to the base's companion files.
/// `card`: of the training, for its model card.
/// Storage errors; Error with ExitCode::stopped after a signal.
void write_result(const ParameterTable& table, const Checkpoint& base, const TrainConfig& config,
                  const FileChanges& changes, const CardRows& card, const RunDirectory& directory);

/// Notes where the files are, and Python code that loads the result.
void tell_result(const ParameterTable& table, const TrainConfig& config,
                 const RunDirectory& directory, Reporter& reporter);

}  // namespace hearth
