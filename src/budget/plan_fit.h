// Whether a plan fits, in words.
#pragma once

#include <cstdint>
#include <string>

#include "budget/plan.h"

namespace hearth {

/// Whole MiB, rounded up.
std::string whole_mebibytes(uint64_t bytes);
/// "the plan needs 12 MiB of host memory and 10 MiB may be used", for every place with too little.
std::string what_is_missing(const Plan& plan);
/// Usage error unless the plan fits, with what is missing. Training names the change that fits
/// instead (budget/plan_changes.h).
void require_fit(const Plan& plan);

}  // namespace hearth
