// Whether a plan fits, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "budget/placed_model.h"

namespace hearth {

/// The places that are short and, if raised to `needed` (needed_memory), make the run fit. All that are
/// short if there are none of these. Not empty for a plan that does not fit.
std::vector<size_t> places_to_raise(const Plan& plan, const std::vector<uint64_t>& needed);
/// "the plan needs 12.5 MB of host memory, but may use only 10 MB", for every place to raise. In
/// bytes, if both read the same otherwise.
std::string what_is_missing(const Plan& plan, const std::vector<uint64_t>& needed = {});
/// "--devices virtual:mem=40M, if virtual:0 has it": the options that give each place the bytes it
/// needs, where that is more than it may use. Empty: no place needs more.
std::string options_that_fit(const Plan& plan, const std::vector<uint64_t>& needed);
/// For evaluation and generation: usage error that names the missing memory and how much would do,
/// unless the plan fits. Training looks for smaller changes, too (budget/plan_changes.h).
void require_fit(const PlacedModel& model, const PlanRequest& request);

}  // namespace hearth
