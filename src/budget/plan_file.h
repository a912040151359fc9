// --plan FILE: a plan that `hearth plan --json` printed, run exactly or refused by name.
#pragma once

#include "base/json.h"
#include "setup/config.h"

namespace hearth {

/// The options with what the plan file chose in place of what they leave open: workers, compute
/// type, recompute, group. Without a plan file: the options as they are. An option that says
/// otherwise stays, for `require_planned` to refuse; input error for a file that is no plan.
TrainConfig as_planned(const TrainConfig& options);

/// Usage error naming the first field in which the plan of this run (plan_json) is another than that
/// of the file: what is run, in which order, and every byte that is not measured.
void require_planned(const TrainConfig& config, const Json& plan);

}  // namespace hearth
