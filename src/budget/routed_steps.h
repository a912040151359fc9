// Simulates steps of a placed model whose routing is known. The prediction of a plan takes all experts
// for equally popular (budget/plan_time.h).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "budget/plan_time.h"

namespace hearth {

/// Choices by expert, [E], of a layer in a micro-batch of a step. Steps count from 0.
using RoutedChoices =
    std::function<std::span<const int64_t>(int64_t step, int32_t layer, int32_t micro_batch)>;

/// Steps one after the other. The rule of splits knows what came before, and devices keep what the step
/// before has left, as in a run. The model must have a training schedule of one rank, and rates.
std::vector<SimulatedStep> simulate_steps(const PlacedModel& model, const StepWork& work,
                                          int64_t steps, const RoutedChoices& choices);

}  // namespace hearth
