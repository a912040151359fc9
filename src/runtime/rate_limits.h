// How large the problems are by which a device's rates are measured.
#pragma once

#include <functional>
#include <initializer_list>

#include "base/sanitized.h"
#include "device/device.h"
#include "plan/bound.h"

namespace hearth {

// Instrumented loops have no rate worth a measurement: every size below is divided by this there.
inline constexpr int64_t kRatePart = kSanitized ? 8 : 1;

/// What a measurement takes at most.
struct RateLimits {
  int64_t rows = 0, width = 0, out = 0, expert_width = 0, document = 0, vocabulary = 0;
  int64_t sweep = 0;  // parameters
  int64_t least_experts = 0, most_experts = 0;
  double flops = 0;    // of one op
  bool whole = false;  // the run's own sizes, as far as memory and `flops` allow
};

/// Small problems on a device whose ops run in the call: larger ones run at the same rate on a CPU.
/// The run's own sizes on a device with a clock of its own: small ones leave most units of a GPU
/// idle, and fit its caches. `best` is what `measure_rates` returned, so far.
RateLimits rate_limits(const Device& device, const MachineRates& best);

/// `most`, halved until `fits` accepts it; at least 1.
int64_t largest(int64_t most, const std::function<bool(int64_t)>& fits);
/// A number of bytes.
uint64_t product_of(std::initializer_list<int64_t> factors);

}  // namespace hearth
