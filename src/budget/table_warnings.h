// What makes predicted times doubtful: noise, and sizes that no table has.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "budget/placed_model.h"
#include "plan/cost_model.h"

namespace hearth {

/// A step has tasks of so many times the largest size that a table has of them: their times are a
/// guess.
inline constexpr double kFarAbove = 4;

/// A line for each place whose table was measured on a noisy machine, and a line for each place
/// with tasks far above the last point of the entry that times them. Sweeps over parameters do not
/// count: they do take time in proportion. The model must have a training schedule.
std::vector<std::string> table_warnings(const PlacedModel& model,
                                        std::span<const BatchWork> batches);

}  // namespace hearth
