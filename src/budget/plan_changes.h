// Changes of a run that make its plan fit, the smallest change first. Each change is planned as the
// run would plan it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "budget/plan.h"

namespace hearth {

/// A change that fits. `options` are written as the user writes them, and replace the user's options
/// of the same names.
struct PlanChange {
  std::string options;
  uint64_t peak = 0;  // planned, of the place that has too little without the change
};

/// The changes that fit, least first; empty if none does or the plan fits. The order of the search
/// is in docs/planning.md. It ends with the first that fits, and finds one if any of them fits.
std::vector<PlanChange> changes_that_fit(const std::shared_ptr<const OpenedModel>& opened,
                                         const PlanSubject& subject, const PlanRequest& request,
                                         const TrainConfig& config);

/// The least budget of every place with which the request fits unchanged.
std::vector<uint64_t> needed_memory(const PlanSubject& subject, const PlanRequest& request);

/// One line: how much memory is missing on which device, the smallest change that fits, and the
/// options that give each short place what the unchanged run needs.
std::string refusal(const Plan& plan, const std::vector<PlanChange>& changes,
                    const std::vector<uint64_t>& needed);

}  // namespace hearth
