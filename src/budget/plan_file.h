// --plan FILE: runs exactly the plan that `hearth plan --json` printed, or refuses.
#pragma once

#include "base/json.h"
#include "setup/config.h"

namespace hearth {

/// Sets unset options from the plan file: workers, compute type, recompute, group. Without a plan
/// file, returns the options unchanged. Keeps an option that contradicts the plan;
/// `require_planned` refuses it. Input error if the file is not a plan, or is from an older
/// version.
TrainConfig as_planned(const TrainConfig& options);

/// The document of a plan file. Errors as as_planned.
Json read_plan_file(const std::string& path);

/// Usage error that names the first field where this run's plan (plan_json) differs from the file.
/// Compares the method, the places, the schedule, and all memory that is not measured.
void require_planned(const TrainConfig& config, const Json& plan);

}  // namespace hearth
