// How the tokens of coming steps will probably be routed. Predictions of a step use it
// (budget/plan_time.h); without it they take all experts for equally popular.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "modes/hot_experts.h"
#include "plan/bound.h"

namespace hearth {

/// Choices by expert, [E], of a layer in a micro-batch of a step. Steps count from 0.
using RoutedChoices =
    std::function<std::span<const int64_t>(int64_t step, int32_t layer, int32_t micro_batch)>;

/// What a prediction says that has none.
inline constexpr const char* kEqualPopularity = "all experts taken for equally popular";

struct ExpectedRouting {
  RoutedChoices choices;
  /// That are simulated. The first one fills slots and histories, and counts for nothing.
  int64_t steps = 3;
  std::string basis;  // for people: "experts as popular as in ..."
};

/// Micro-batches whose tokens choose at random with the shares of `counts`, so that few tokens differ
/// from step to step and from what was foreseen, and many hardly do. Equal arguments give equal choices.
/// All choices of a micro-batch are somewhere. A layer without counts has equal shares. Null: `counts`
/// is empty. `batches`: the work of each micro-batch of a step.
std::shared_ptr<const ExpectedRouting> routing_like(const ExpertCounts& counts,
                                                    const ModelSpec& spec,
                                                    std::span<const BatchWork> batches,
                                                    std::string basis);

}  // namespace hearth
