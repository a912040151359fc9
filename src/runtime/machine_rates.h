// Measures how fast this machine runs the op set now, for bounds and predictions. Only reports use
// the measurement; no decision depends on it.
#pragma once

#include <vector>

#include "device/device.h"
#include "plan/bound.h"
#include "plan/cost_model.h"

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
/// parameters that the run trains, at most 4 million (64 MiB). Takes the best of several runs of
/// each. Needs a fraction of a second.
MachineRates measure_rates(Device& device, const RateOptions& options);

/// The shapes that `measure_costs` measures.
struct RunShapes {
  const ModelSpec& spec;
  DType linear_weights = DType::f32;  // type of the weights that products read
  DType expert_weights = DType::f32;
  bool linear_trained = true;
  bool experts_trained = true;
  int64_t tokens = 0;   // most tokens of a micro-batch
  int64_t longest = 0;  // most tokens of a document
};

/// Measures every op of the step on the run's shapes. Needs about a second: a shape that would take
/// more than a few hundredths of a second is cut, and the cut shape's rate stands for the full one.
CostRates measure_costs(Device& device, const RateOptions& options, const RunShapes& shapes);

}  // namespace hearth
