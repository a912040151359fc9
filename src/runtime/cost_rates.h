// Measures how fast a device runs the tasks of a run, for predictions.
#pragma once

#include "plan/cost_model.h"
#include "runtime/machine_rates.h"

namespace hearth {

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
/// On a device with a clock of its own, a shape is cut if it needs more than `max_bytes`, or more
/// than 4 ms at the rate of `best`. `best` is what `measure_rates` returned.
CostRates measure_costs(Device& device, const RateOptions& options, const RunShapes& shapes,
                        const MachineRates& best);

}  // namespace hearth
