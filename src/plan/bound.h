// The lower bound of a step's time: products at the measured rate of large products, then the
// update at the measured rate of the optimizer's sweep. Nothing runs faster than this here.
#pragma once

#include <cstdint>
#include <span>

#include "plan/schedule.h"

namespace hearth {

/// What a machine reaches, measured in the same process (runtime/machine_rates.h).
struct MachineRates {
  double flops_per_s = 0;          // large product in the run's compute type, all workers
  double update_params_per_s = 0;  // AdamW sweep over memory
};

/// What a micro-batch asks for. `pairs`: of a query and a key that it sees.
struct BatchWork {
  double tokens = 0;
  double pairs = 0;
  double trained = 0;
};
/// Of sequences with the given lengths offsets[i+1] - offsets[i].
BatchWork work_of(std::span<const int32_t> offsets, double trained);

struct StepBound {
  double flops = 0;
  double products_s = 0;
  double update_s = 0;
  double total_s() const { return products_s + update_s; }
  /// The resource that takes the larger part.
  const char* limit() const { return update_s > products_s ? "memory bandwidth" : "compute"; }
};
/// batches[m] is the work of micro-batch m; `updated` the number of trained parameters.
StepBound step_bound(const Schedule& schedule, std::span<const BatchWork> batches,
                     const MachineRates& rates, int64_t updated);

}  // namespace hearth
