// Splits of policies that do not look at tokens.
#pragma once

#include "plan/decisions/split_problem.h"

namespace hearth {

/// All experts on the device, as `mobius` and `gpipe-offload` have it. If the device has no room for
/// all of them, those that are there and then the most popular. All have the reason `policy`, or
/// `no_room`.
ExpertSplit split_all_on_device(const SplitProblem& problem);

/// All experts on the host, with the reason `policy`.
ExpertSplit split_all_on_host(const SplitProblem& problem);

}  // namespace hearth
