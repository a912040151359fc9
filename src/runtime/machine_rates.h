// What this machine reaches right now: the yardstick of bounds. Only reports depend on it, never a
// decision.
#pragma once

#include "device/device.h"
#include "plan/bound.h"

namespace hearth {

/// Takes a fraction of a second: the best of several products of a size that every cache likes, and
/// of several optimizer sweeps over as many parameters as the run trains, 4 million (64 MiB) at most.
MachineRates measure_rates(Device& device, const OpSet& ops, Compute compute, int64_t parameters,
                           int workers, const std::vector<int>& cores);

}  // namespace hearth
