// The plan of a training run, as `hearth plan` prints it.
#pragma once

#include "budget/plan_report.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// Plans the run that `train` would start, without starting it. Raises Error (base/error.h) with an
/// exit code (docs/errors.md); a plan that does not fit is not an error.
PlanReport report_plan(const TrainConfig& config, Reporter& reporter,
                       PlanDetail detail = PlanDetail::summary);

}  // namespace hearth
