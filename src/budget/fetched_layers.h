// Of expert domains: the layers whose experts ranks do not keep, but fetch before each use
// (layers/fetched_experts.h).
#pragma once

#include "budget/placed_model.h"

namespace hearth {

/// If `model` does not fit: plans it again with the fewest layers whose experts are fetched, if that fits.
/// The last layers are fetched first, since backward begins with the last one's experts, which are still
/// there. Nothing changes if it fits or never does, without expert domains, or if weights travel
/// compressed. Afterwards `request` is what was planned.
void fetch_what_does_not_fit(PlacedModel& model, PlanRequest& request);

}  // namespace hearth
