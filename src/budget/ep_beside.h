// What a step of a run with zebra would take if the same ranks shared the experts with `ep`.
#pragma once

#include <cstdint>
#include <optional>

#include "budget/placed_model.h"
#include "budget/plan_time.h"

namespace hearth {

/// Plans and simulates a step with `ep` on the ranks of `zebra`, each at its own speed. With the logical
/// shards of the run if the ranks divide them, else with one for each rank. None: micro-batches do not
/// divide among the ranks, or rank 0 has too little memory for its plan.
std::optional<EpBeside> ep_beside(const PlacedModel& zebra, const PlanRequest& request,
                                  const StepWork& work);

}  // namespace hearth
