// What a plan lacks.
#pragma once

#include "budget/plan.h"

namespace hearth {

/// How many bytes all places lack; 0: the plan fits.
uint64_t shortage(const Plan& plan);

}  // namespace hearth
