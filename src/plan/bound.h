// A lower bound of a step's time on this machine: all products at the best measured rate, then the
// update at the optimizer's measured rate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/schedule.h"

namespace hearth {

/// The speed of this machine, measured by this process (runtime/machine_rates.h).
struct MachineRates {
  double flops_per_s = 0;          // best product in the run's compute type, all workers
  double update_params_per_s = 0;  // AdamW sweep over memory
};

/// The work of a micro-batch, or the mean over many micro-batches; so counts can be fractions.
struct BatchWork {
  struct Documents {
    double length = 0;
    double count = 0;
  };
  double tokens = 0;
  double trained = 0;
  std::vector<Documents> documents;

  /// Pairs of a query and a key that the query sees, if it sees at most `window` keys (0: all keys
  /// before it).
  double pairs(int64_t window) const;
};
/// Documents of the lengths offsets[i+1] - offsets[i].
BatchWork work_of(std::span<const int32_t> offsets, double trained);
/// The work of some micro-batches of a step together; of none: empty.
BatchWork work_of(RowRange rows, std::span<const BatchWork> batches);
/// `tokens` tokens in documents of at most `longest` tokens, all trained.
BatchWork full_batch(int64_t tokens, int64_t longest);

/// Floating-point operations of a task's products.
double flops_of(const Work& work, const BatchWork& batch);

struct StepBound {
  double flops = 0;
  double products_s = 0;
  double update_s = 0;
  double loads_s = 0;  // of weights, over the slowest link, beside the others
  double total_s() const { return std::max(products_s + update_s, loads_s); }
  /// The resource that takes most of the time.
  const char* limit() const {
    if (loads_s > products_s + update_s) return "links";
    return update_s > products_s ? "memory bandwidth" : "compute";
  }
};
/// batches[m] is the work of micro-batch m, `updated` the number of trained parameters. Recompute
/// does not count.
StepBound step_bound(const Schedule& schedule, std::span<const BatchWork> batches,
                     const MachineRates& rates, int64_t updated);

}  // namespace hearth
