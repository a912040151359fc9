// The result of a run: `model/` of a full run, `adapter/` of a LoRA run.
#pragma once

#include "checkpoint/checkpoint.h"
#include "record/run_directory.h"
#include "setup/reporter.h"

namespace hearth {

/// Writes the trained tensors of the table to the result of the directory. The result of an earlier
/// end of the run is replaced, and stays until the new one is whole. `changes`: of the base's
/// companion files. Storage errors; Error with ExitCode::stopped after a signal.
void write_result(const ParameterTable& table, const Checkpoint& base, const TrainConfig& config,
                  const FileChanges& changes, const RunDirectory& directory);

/// Notes where everything is, and the lines of Python that load the result.
void tell_result(const ParameterTable& table, const TrainConfig& config,
                 const RunDirectory& directory, Reporter& reporter);

}  // namespace hearth
