// The rule of `auto`: the split whose last resource ends first (plan/decisions/split_model.h).
#pragma once

#include "plan/decisions/split_problem.h"

namespace hearth {

/// Compares all on the host, all on the device (or as many as it has room for), the splits of
/// Equation 1, and every number of the most popular experts beside those that are on the device
/// anyway. Then it moves and exchanges experts while that helps. So no candidate is better by the
/// model. Of equal splits the first in this order wins, so equal problems give equal splits.
ExpertSplit split_by_makespan(const SplitProblem& problem);

}  // namespace hearth
