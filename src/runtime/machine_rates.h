// Measures how fast this machine runs the op set now, for bounds and predictions. Only reports use
// the measurement; no decision depends on it.
#pragma once

#include <vector>

#include "device/device.h"
#include "ops/op_set.h"
#include "plan/bound.h"

namespace hearth {

/// How to measure.
struct RateOptions {
  const OpSet& ops;
  Compute compute = Compute::f32;
  int workers = 1;
  std::vector<int> cores;  // logical CPUs of the workers; empty = unbound
  uint64_t max_bytes = 0;  // most memory in use at any time
  int64_t parameters = 0;  // number of parameters that the run trains
};

/// Measures products of 1,024 x 512 with 256 to 1,024 rows, and optimizer sweeps over the number of
/// parameters that the run trains, at most 4 million (64 MiB). On a device with a clock of its own,
/// products of up to 8,192 x 8,192 with 8,192 rows, as large as it needs to fill the device, and
/// sweeps of up to 64 million parameters. Takes the best of several runs of each. Needs a fraction
/// of a second.
MachineRates measure_rates(Device& device, const RateOptions& options);

}  // namespace hearth
