// What would make a plan fit that does not: changes of the run, each planned as the run would plan
// it, in the order of how little they change.
#pragma once

#include <string>
#include <vector>

#include "budget/run_plan.h"

namespace hearth {

/// A change that fits: options as they are typed, and the peak that is planned with them.
struct PlanChange {
  std::string options;
  uint64_t peak = 0;  // of the place that has too little as the run is asked for
};

/// The changes that fit, least first; empty if none does or the plan fits. Tried, in this order:
/// recompute; fewer sequences in more micro-batches (the same tokens a step); no rounded weights
/// (--compute-dtype f32); the experts on the host (--devices NAME,host); shorter sequences (to a quarter); frozen parts (embedding, experts, all but
/// attention), alone and with the smallest micro-batch; shorter sequences still; several of these at
/// once. Search ends with the first that fits, and finds one if any of these runs fits.
std::vector<PlanChange> changes_that_fit(const PlanSubject& subject, const PlanRequest& request,
                                         const TrainConfig& config);

/// One line: what is missing and where, the smallest change that fits, and the memory of the first
/// place that has too little with which the run would fit as it is asked for.
std::string refusal(const RunPlan& plan, const std::vector<PlanChange>& changes, uint64_t needed);

/// The least budget of a place with which the request fits as it is.
uint64_t needed_memory(const PlanSubject& subject, const PlanRequest& request,
                       Place place = kHostPlace);

}  // namespace hearth
