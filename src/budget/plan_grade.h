// A plan held against what its run measured.
#pragma once

#include <vector>

#include "budget/plan.h"

namespace hearth {

/// The memory of the plan with `measured` of every line and of every peak.
std::vector<PlaceLines> graded(const Plan& plan, const MeasuredMemory& measured);

}  // namespace hearth
