// The planner `single`: one device and the host, one step after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "modes/planner.h"

namespace hearth {

/// Tasks run where their blocks are. A training step is layer-major: each micro-batch of a group
/// passes a layer before any of them enters the next. Every task reads the weights of its layer, so
/// a layer's weights are used by consecutive tasks. Activations grow with the group.
const Planner& single_planner();

/// `train_within` for given arena budgets, in bytes by place. Places beyond the end of `budgets`
/// have no limit.
TrainSchedule single_train_within(const PlanInput& input, std::optional<bool> recompute,
                                  const std::vector<uint64_t>& budgets);

}  // namespace hearth
