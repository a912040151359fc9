// The rates of what passes over all parameters of a run.
#pragma once

#include "runtime/machine_rates.h"
#include "runtime/rate_limits.h"

namespace hearth {

/// Parameters per second of the optimizer. `working`: it writes a rounded copy, too.
double measure_update(Device& device, const RateOptions& options, const RateLimits& limits,
                      bool working);
/// Parameters per second of a sum of squares.
double measure_norm(Device& device, const RateOptions& options, const RateLimits& limits);

}  // namespace hearth
