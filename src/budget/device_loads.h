// How weights travel to the devices of a planned run.
#pragma once

#include <span>
#include <vector>

#include "budget/placed_model.h"
#include "device/link_rate.h"
#include "plan/load_simulation.h"

namespace hearth {

/// Of each device to which blocks travel; empty: all live where they are computed with. `links`: by
/// place.
std::vector<DeviceLoads> device_loads(const PlacedModel& model, std::span<const LinkRates> links);

/// How a device with these slots loads what travels to it.
LoadRule load_rule(const PlacedModel& model, Place place, std::span<const SlotClass> classes);

/// The smallest budget that a device can work on with while the run goes on: everything of its plan,
/// with the fewest slots.
uint64_t least_budget(const PlacedModel& model, Place place);
/// Of the slots of its plan, those that a device keeps within a smaller budget of at least
/// `least_budget`. Each size keeps about the same share of its cargoes.
std::vector<SlotClass> slots_within(const PlacedModel& model, Place place, uint64_t budget);

/// The least seconds in which the loads of a training step pass their links. A weight that an update
/// changes is loaded once at least. Each pass over the layers, forward or backward, loads what the slots
/// cannot keep from the pass before. Gradients go home once. 0: nothing travels, or links have no limit.
double least_load_seconds(const PlacedModel& model, std::span<const LinkRates> links);

}  // namespace hearth
