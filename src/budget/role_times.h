// What the tasks of zebra's roles take, by stage and layer.
#pragma once

#include <string>

#include "budget/placed_model.h"
#include "budget/plan_time.h"

namespace hearth {

/// Seconds by stage and layer for a micro-batch, from the schedules of the first rank of each role. Of
/// each role, the rank that is slowest at a stage, or at a layer's experts, counts. Exchanges take what
/// they take at rank 0.
ZebraTimes zebra_times(const PlacedModel& model, const ZebraRoles& roles, const StepWork& work);

/// For people: that an expert rank would compute attention faster than an attention rank does. Empty: none
/// would.
std::string faster_expert_rank(const PlacedModel& model, const ZebraRoles& roles,
                               const StepWork& work);

}  // namespace hearth
