// What the parameters of stages take, and the room that devices have for them: shows without a
// schedule that no cut fits.
#pragma once

#include <cstdint>
#include <vector>

#include "budget/plan.h"

namespace hearth {

/// The bytes that the parameters of each unit have on its device: embedding, layers, head. Experts
/// that are elsewhere do not count; where weights travel, nothing does, since slots take what is left.
std::vector<uint64_t> unit_bytes(const PlanSubject& subject, bool training);

/// The memory of the device of each stage (ModelPlaces::dense). A device with several stages gives
/// each a share, unless weights travel.
std::vector<uint64_t> stage_room(const PlanSubject& subject);

/// False only if no plan of the request fits: the parameters alone are more than the devices have.
bool may_fit(const PlanSubject& subject, const PlanRequest& request);

}  // namespace hearth
