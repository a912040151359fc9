// What the data of a run come to, for people and for plan.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "budget/plan_time.h"

namespace hearth {

/// Lines without line breaks: the rows, and an epoch of them.
std::vector<std::string> data_lines(const DataShape& data, std::optional<int64_t> steps);

/// The object `data` of plan.json; docs/planning.md names its keys.
Json data_json(const DataShape& data, std::optional<int64_t> steps);

}  // namespace hearth
