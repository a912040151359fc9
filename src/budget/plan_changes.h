// Finds changes of a run that make its plan fit, the smallest first. Plans each change as the run
// would.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "budget/placement_plan.h"

namespace hearth {

/// A change that fits. `options` are in the user's spelling, and replace options of the same names.
struct PlanChange {
  std::string options;
  uint64_t peak = 0;  // planned peak of the place that was too small without the change
};

/// The changes that fit, the smallest first; empty if none fits or the plan fits unchanged. The
/// search stops at the first change that fits. docs/planning.md lists its order.
std::vector<PlanChange> changes_that_fit(const std::shared_ptr<const OpenedModel>& opened,
                                         const PlanSubject& subject, const PlanRequest& request,
                                         const TrainConfig& config);

/// One line: how much memory is missing on which device, the smallest change that fits, and the
/// options that raise each budget enough for the unchanged run.
std::string refusal(const Plan& plan, const std::vector<PlanChange>& changes,
                    const std::vector<uint64_t>& needed);

}  // namespace hearth
