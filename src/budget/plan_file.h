// --plan FILE: a plan that `hearth plan --json` printed, run exactly or refused by name.
#pragma once

#include "base/json.h"
#include "setup/config.h"

namespace hearth {

/// Fills in what the options leave open from the plan file: workers, compute type, recompute, group.
/// Without a plan file, returns the options as they are. An option that contradicts the plan stays;
/// `require_planned` refuses it. Input error if the file is not a plan, or an older version made it.
TrainConfig as_planned(const TrainConfig& options);

/// Usage error naming the first field in which this run's plan (plan_json) differs from the file's:
/// the method, the places, the schedule, and every byte that is not measured.
void require_planned(const TrainConfig& config, const Json& plan);

}  // namespace hearth
