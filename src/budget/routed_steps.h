// Simulates steps of a placed model whose routing is known.
#pragma once

#include <vector>

#include "budget/plan_time.h"

namespace hearth {

/// Steps one after the other. The rule of splits knows what came before, and devices keep what the step
/// before has left, as in a run. The model must have a training schedule of one rank, and rates with times of
/// experts (knows_routed_times).
std::vector<SimulatedStep> simulate_steps(const PlacedModel& model, const StepWork& work,
                                          int64_t steps, const RoutedChoices& choices);

/// Whether steps of the model can be simulated so: each place that computes experts has a cost table
/// with their times.
bool knows_routed_times(const PlacedModel& model);

}  // namespace hearth
