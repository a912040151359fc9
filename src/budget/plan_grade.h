// Compares a plan with the measurements of its run.
#pragma once

#include <vector>

#include "budget/plan.h"

namespace hearth {

/// The memory of the plan, with `measured` filled in for every line and every peak.
std::vector<PlaceLines> graded(const Plan& plan, const MeasuredMemory& measured);

}  // namespace hearth
