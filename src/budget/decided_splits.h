// The rule by which a placed model divides the experts of its layers while it runs (--policy
// aptmoe).
#pragma once

#include <memory>
#include <vector>

#include "budget/placed_model.h"
#include "plan/decisions/split_decider.h"

namespace hearth {

/// Of the policy. Null: splits are not decided while the model runs. `schedule`: of the plan; it
/// says which passes a split holds for. `links`: by place. Where a place has no times for experts,
/// devices compute all of them.
std::unique_ptr<SplitDecider> split_decider(const PlacedModel& model, const Schedule& schedule,
                                            std::span<const LinkRates> links);

/// Whether the host and each device have a cost table that decides (RunTable::decides), with times
/// of experts.
bool knows_expert_times(const PlacedModel& model, bool training);

/// The split that such a rule will make of a layer, as far as a plan knows: with the popularity of
/// the sample, or with equal tokens for all experts, in the second of two equal steps. Once the
/// model has a plan, its devices have the slots of the plan, before that none. By layer and expert:
/// 1 if its device computes it.
std::vector<std::vector<uint8_t>> expected_splits(const PlacedModel& model,
                                                  const PlanRequest& request);

}  // namespace hearth
