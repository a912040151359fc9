// What a run needs of the machine, with or without a model: workers and devices.
#pragma once

#include <memory>

#include "setup/opened_model.h"

namespace hearth {

/// Detects the topology, counts the workers and starts the devices, as the options say. If they name
/// another machine for a plan, or the model has its description already, takes it from there and starts
/// nothing. Errors as open_devices and read_described_machine.
void start_machine(const RunConfig& config, OpenedModel& model);

/// A model that is nothing but its shapes, on a started machine, for measurements; or on a described
/// one, for studies. Warnings are in `said`, not yet in the log.
std::shared_ptr<const OpenedModel> open_shapes(
    const RunConfig& config, ModelSpec spec, ParameterTable table,
    std::shared_ptr<const DescribedMachine> described = nullptr);

}  // namespace hearth
