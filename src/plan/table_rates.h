// The rates that a cost table shows, for the bound of a step.
#pragma once

#include "plan/bound.h"
#include "plan/task_costs.h"

namespace hearth {

/// The best rates of the points of a table, over the tasks of a schedule at a place: operations of
/// products per second, and parameters per second of updates. What a schedule trains counts. 0 if the
/// table times none of its tasks.
MachineRates rates_of_table(const PlaceCosts& costs, Place place, const Schedule& schedule,
                            const ModelSpec& spec);

}  // namespace hearth
