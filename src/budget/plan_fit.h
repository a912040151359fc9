// Whether a plan fits, in words.
#pragma once

#include <cstdint>
#include <string>

#include "budget/plan.h"

namespace hearth {

/// Whole MiB, rounded up.
std::string whole_mebibytes(uint64_t bytes);
/// "the plan needs 12 MiB of host memory, but may use only 10 MiB", for every place that is too
/// small.
std::string what_is_missing(const Plan& plan);
/// Usage error that names the missing memory, unless the plan fits. Training uses `refusal`
/// (budget/plan_changes.h) instead.
void require_fit(const Plan& plan);

}  // namespace hearth
