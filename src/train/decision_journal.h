// What a run decided about experts, as its journal has it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "modes/placement.h"
#include "plan/decisions/split_decider.h"
#include "record/journal.h"

namespace hearth {

/// One event for each decision of a step (`full`), or one with the digest of what these events would
/// say. Nothing if the step decided nothing. `names`: of places. Micro-batches of a group are decided
/// together, so none is named. `width`: of experts.
void journal_decisions(Journal& journal, int64_t step, std::span<const SplitDecision> decisions,
                       const Placement& placement, const std::vector<std::string>& names,
                       int64_t width, bool full);

}  // namespace hearth
