// Recompute that saves time: where weights travel, it leaves room for larger groups, which need fewer
// loads of them, and for slots.
#pragma once

#include "budget/placed_model.h"
#include "budget/plan_time.h"

namespace hearth {

/// place_model with measured rates. If the options leave recompute open, weights travel, and only a part
/// of the step's micro-batches fits at one time, or a device has slots for less than two of its stages,
/// it plans once more with recompute, and takes that plan if its step is predicted to take less time.
PlacedModel place_fastest(TrainedModel model, const PlanRequest& request, const StepWork& work,
                          RunTables tables = {}, const std::optional<ChosenPolicy>& policy = {});

}  // namespace hearth
