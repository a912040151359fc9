// Reports the size of the data of a run, for people and for plan.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "budget/plan_time.h"

namespace hearth {

/// Lines (without line breaks) about the rows and about an epoch.
std::vector<std::string> data_lines(const DataShape& data, std::optional<int64_t> steps);

/// The object `data` of plan.json; docs/planning.md names its keys.
Json data_json(const DataShape& data, std::optional<int64_t> steps);

}  // namespace hearth
