// The static split of experts between devices and the host: devices are filled with the hottest.
#pragma once

#include "budget/placement_plan.h"

namespace hearth {

/// Moves the hottest experts of each stage (`PlanSubject::popularity`) from the host to the stage's
/// device, as many as fit there beside what the plan has; with their optimizer state, if they are
/// trained. The group and recompute of the plan stay, since activations come first. A device that
/// lacks memory already gets none, and no place lacks more memory than before.
PlacementPlan with_hot_experts(const PlanSubject& subject, const PlanRequest& request,
                               PlacementPlan plan);

}  // namespace hearth
