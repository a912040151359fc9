// Whether a plan fits, in words.
#pragma once

#include <cstdint>
#include <string>

#include "budget/placed_model.h"

namespace hearth {

/// Whole MiB, rounded up.
std::string whole_mebibytes(uint64_t bytes);
/// "the plan needs 12 MiB of host memory, but may use only 10 MiB", for every place that is too
/// small. In bytes, if both are as many whole MiB.
std::string what_is_missing(const Plan& plan);
/// "--devices virtual:mem=40Mi, if virtual:0 has it": the options that give each place the bytes it
/// needs, where that is more than it may use.
std::string options_that_fit(const Plan& plan, const std::vector<uint64_t>& needed);
/// For evaluation and generation: usage error that names the missing memory and how much would do,
/// unless the plan fits. Training looks for smaller changes, too (budget/plan_changes.h).
void require_fit(const PlacedModel& model, const PlanRequest& request);

}  // namespace hearth
