// What a run needs of the machine, with or without a model: workers and devices.
#pragma once

#include <memory>

#include "setup/opened_model.h"

namespace hearth {

/// Detects the topology, counts the workers and starts the devices, as the options say. If they name
/// another machine for a plan, takes it from there and starts nothing. Errors as open_devices and
/// read_described_machine.
void start_machine(const RunConfig& config, OpenedModel& model);

/// A model that is nothing but its shapes, on a started machine: for measurements. Warnings are in
/// `said`, not yet in the log.
std::shared_ptr<const OpenedModel> open_shapes(const RunConfig& config, ModelSpec spec,
                                               ParameterTable table);

}  // namespace hearth
