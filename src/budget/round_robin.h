// The stages of `roundpipe`: they go round the devices, forward and backward each with a cut of its own.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "budget/placement_plan.h"

namespace hearth {

/// The cut of forward, and that of backward with its recompute, whose order of passes ends first, of
/// those that leave every device slots for two of its stages; of equals, the fewest stages. Stage s
/// of forward is on device s mod P. Backward goes on with the device behind that of the last stage.
/// The head is with the last stage of forward. If the request has stage_ends and backward_ends that
/// cut these layers, that cut is planned. Needs two devices or more, and weights that travel. Usage
/// error if there are more devices than layers and embedding. Pure.
PlacementPlan round_robin_plan(const PlanSubject& subject, const PlanRequest& request);

/// The stages with these ends (PlanRequest::stage_ends and backward_ends), which go round the devices;
/// none if they do not cut so many layers.
std::optional<std::vector<Stage>> forward_stages(std::span<const Place> devices, int32_t layers,
                                                 std::span<const int32_t> ends);
std::optional<std::vector<Stage>> backward_stages(std::span<const Place> devices, int32_t layers,
                                                  size_t forward, std::span<const int32_t> ends);

}  // namespace hearth
