// The cost tables of a run that nobody gave: from the user's cache, or measured at the start.
#pragma once

#include "budget/placed_model.h"

namespace hearth {

/// The most seconds that a start measures: best rates, tables and links.
inline constexpr double kStartSeconds = 5;

/// Whether the parameters of a run alone are more than all its places may use: it is refused soon, so
/// tables are not worth their time.
bool fits_nowhere(const PlacedModel& model);

/// Completes `model.tables`: each place that computes and is not paced gets a table, if its own has
/// no time of the run's compute type. A table in the user's cache is taken if it was measured with
/// the run's shapes, cores and compute type, and the run trains all tensors, as `hearth profile`
/// does. All other places are measured, those that are alike once, in at most `seconds` and at most
/// half of the memory that the process has left (a gigabyte, half of what the run's parameters take
/// if that is more than 192 MiB, and what can be filled in a quarter of the time). The clock is read
/// between runs of tasks. A place whose memory or time is too small for that stays without a table.
void complete_tables(PlacedModel& model, const PlanRequest& request, double seconds);

}  // namespace hearth
