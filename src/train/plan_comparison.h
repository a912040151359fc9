// Two plans side by side: `hearth plan --compare A,B`.
#pragma once

#include <array>
#include <string>

#include "base/json.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// A plan as `hearth plan --json` prints it.
struct NamedPlan {
  std::string name;  // as the user gave it
  Json plan;
};
using TwoPlans = std::array<NamedPlan, 2>;

/// The plans of two names. A mode (single, pipeline) is planned with the options, by that mode
/// instead of theirs. Any other name is a file that `hearth plan --json` printed. Errors as
/// report_plan; usage error for a name that is neither; input error for a file that is no plan.
TwoPlans two_plans(const std::array<std::string, 2>& names, const TrainConfig& config,
                   Reporter& reporter);

/// {"plans": [{"name", "plan"}, {"name", "plan"}], "faster": a name, or null if the times are equal or
/// one is unknown}.
Json comparison_json(const TwoPlans& plans);
/// A table for people: a row for each figure that the plans have, a column for each plan.
std::string comparison_text(const TwoPlans& plans);

}  // namespace hearth
