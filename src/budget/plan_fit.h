// Whether a plan fits, in words.
#pragma once

#include <cstdint>
#include <string>

#include "budget/placed_model.h"

namespace hearth {

/// "the plan needs 12.5 MB of host memory, but may use only 10 MB", for every place that is too
/// small. In bytes, if both read the same otherwise.
std::string what_is_missing(const Plan& plan);
/// "--devices virtual:mem=40M, if virtual:0 has it": the options that give each place the bytes it
/// needs, where that is more than it may use.
std::string options_that_fit(const Plan& plan, const std::vector<uint64_t>& needed);
/// For evaluation and generation: usage error that names the missing memory and how much would do,
/// unless the plan fits. Training looks for smaller changes, too (budget/plan_changes.h).
void require_fit(const PlacedModel& model, const PlanRequest& request);

}  // namespace hearth
