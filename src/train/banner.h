// Describes a run before its first step.
#pragma once

#include "train/planned_run.h"

namespace hearth {

/// Notes the model, what is trained, the data and the plan. `fresh`: the run starts at step 1; also
/// notes one sample of the data.
void describe(const PlannedRun& run, const TrainConfig& config, int64_t warmup, bool fresh,
              Reporter& reporter);

}  // namespace hearth
