// What `simulate step` and `simulate figure` say of simulated steps.
#pragma once

#include <string>

#include "base/json.h"
#include "study/step_study.h"

namespace hearth {

/// {"simulated": true, "rows", "tasks", "seconds"}; `seconds` of simulating.
Json study_json(const StudyResult& result, double seconds);
/// A table with a line for each row. Ratios are to mobius at the same point.
std::string study_text(const StudyResult& result, double seconds);

}  // namespace hearth
