// The memory that a run needs which does not fit.
#pragma once

#include <cstdint>
#include <vector>

#include "budget/placement_plan.h"

namespace hearth {

/// The budget of every place with which the request fits, if what is above the present budgets is
/// raised to it. With one place for the dense parts, the least of every place. With several stages,
/// the least of the first device that alone makes the plan fit, the others being as they are; if no
/// device does, of every place that is short. What the places that are short lack in the plan that was
/// found is named instead if it is less in all.
std::vector<uint64_t> needed_memory(const PlanSubject& subject, const PlanRequest& request);

}  // namespace hearth
