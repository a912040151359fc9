// What this machine reaches right now with the op set: the yardstick of bounds and predictions.
// Only reports depend on it, never a decision.
#pragma once

#include <vector>

#include "device/device.h"
#include "plan/bound.h"
#include "plan/cost_model.h"

namespace hearth {

/// How to measure: with which ops, where, and within how much memory.
struct RateOptions {
  const OpSet& ops;
  Compute compute = Compute::f32;
  int workers = 1;
  std::vector<int> cores;  // logical CPUs of the workers, empty = unbound
  uint64_t max_bytes = 0;  // of memory at any time
  int64_t parameters = 0;  // that the run trains
};

/// Takes a fraction of a second, the best of several runs each: products of 1,024 x 512 with 256 to
/// 1,024 rows, and optimizer sweeps over as many parameters as the run trains, 4 million (64 MiB)
/// at most.
MachineRates measure_rates(Device& device, const RateOptions& options);

/// What the run computes, for `measure_costs`.
struct RunShapes {
  const ModelSpec& spec;
  DType linear_weights = DType::f32;  // types in which the products find their weights
  DType expert_weights = DType::f32;
  bool linear_trained = true;
  bool experts_trained = true;
  int64_t tokens = 0;   // of a micro-batch
  int64_t longest = 0;  // of a document
};

/// Takes about a second: every op of the step on the run's shapes, cut to what takes a few
/// hundredths of a second. Sizes above those cuts run at the rate of the cut.
CostRates measure_costs(Device& device, const RateOptions& options, const RunShapes& shapes);

}  // namespace hearth
