// Measures how much slower a rank computes while other ranks compute on the cores beside it: they
// share caches, memory and, of virtual machines, often more.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "runtime/machine_rates.h"

namespace hearth {

/// Factors of seconds, at least 1: of products, and of sweeps over memory.
struct SharedSpeed {
  double products = 1, sweeps = 1;
};

/// Of `ranks` ranks, each with cores for the workers of `options`, which are not bound, and with
/// `options.max_bytes`. Needs half a second.
SharedSpeed measure_shared_speed(Device& device, const RateOptions& options, int64_t ranks);

}  // namespace hearth
