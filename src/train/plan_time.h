// How long a planned run will take: predicted from a quick measurement of the machine, beside the
// bound that no run here can pass.
#pragma once

#include <optional>
#include <string>

#include "plan/cost_model.h"
#include "runtime/machine_rates.h"
#include "train/run_plan.h"

namespace hearth {

/// Both measurements of the machine, each made twice and the best of it taken, before a run's
/// memory is reserved. They take a quarter of what the process may still take, 192 MiB at most.
struct RunRates {
  MachineRates best;
  CostRates costs;
};
RunRates measure_run(const RunSetup& setup, const PlanRequest& request);

/// A mean step: of the data where it is known, else full micro-batches.
struct StepWork {
  std::vector<BatchWork> batches;
  std::string basis;
};
StepWork full_step(const PlanRequest& request);
StepWork mean_step(const RowSet& rows, const SamplerOptions& options, int64_t sequences);

struct PlanTimes {
  StepCost step;
  StepBound bound;
  double tokens = 0;  // of a step
  std::string basis;  // of its work
  std::optional<int64_t> steps;
  Trace trace;  // of a step, predicted
};
PlanTimes predict(const RunSetup& setup, const RunPlan& plan, const RunRates& rates,
                  const StepWork& work, std::optional<int64_t> steps);

}  // namespace hearth
