// The cost tables of a run that nobody gave: from the user's cache, or measured at the start.
#pragma once

#include "budget/placed_model.h"

namespace hearth {

/// The most seconds of a start that measures tables. Best rates and links take part of a fifth.
inline constexpr double kTableSeconds = 4;

/// Whether the parameters of a run alone are more than all its places may use: it is refused soon, so
/// tables are not worth their time.
bool fits_nowhere(const PlacedModel& model);

/// Completes `model.tables`: each place that computes and is not paced gets a table, if its own has
/// no time of the run's compute type. A table in the user's cache is taken if it was measured with
/// the run's shapes, cores and compute type, and the run trains all tensors, as `hearth profile`
/// does. All other places are measured, those that are alike once, in at most kTableSeconds and at
/// most half of the memory that the process has left (a gigabyte, and half of what the run's
/// parameters take if that is more than 192 MiB). A place whose memory is too small for that stays
/// without a table.
void complete_tables(PlacedModel& model, const PlanRequest& request);

}  // namespace hearth
