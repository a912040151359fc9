// How long a planned run will take: predicted from a quick measurement of the machine, beside the
// bound that no run here can pass.
#pragma once

#include <optional>
#include <string>

#include "budget/placed_model.h"
#include "data/samples/run_rows.h"
#include "data/samples/sampler.h"
#include "plan/cost_model.h"
#include "runtime/machine_rates.h"

namespace hearth {

/// Measures the machine for a placed model, before its plan is made and its memory reserved. Each
/// measurement is made twice and the best of both is taken. They take a quarter of what the process
/// may still take, or of the budget of the device, 192 MiB at most. Usage error if a device is too
/// small for them.
RunRates measure_run(const PlacedModel& model, const PlanRequest& request);

/// While one lives, `measure_run` takes round numbers for every machine and measures nothing. A
/// measurement takes half a second; tests start hundreds of runs. No result of a run changes.
class AssumedRates {
 public:
  AssumedRates();
  ~AssumedRates();
  AssumedRates(const AssumedRates&) = delete;
  AssumedRates& operator=(const AssumedRates&) = delete;
};

/// What the data of a run come to.
struct DataShape {
  RowSummary rows;        // all of them, those for evaluation included
  int64_t eval_rows = 0;  // kept by --val-size
  int64_t sequences = 0;  // of the first epoch
  int64_t tokens = 0;     // likewise, copies by weight included
  int64_t trained_tokens = 0;
  double fill = 0;   // tokens over what its sequences could hold
  double steps = 0;  // of an epoch, not rounded
};

/// A mean step: of the data where it is known, else full micro-batches.
struct StepWork {
  std::vector<BatchWork> batches;
  std::string basis;
  std::optional<DataShape> data;
};
StepWork full_step(const PlanRequest& request);
/// By the first epoch.
StepWork mean_step(const RunRows& rows, const SamplerOptions& options, const Sampler& sampler);

/// `step`, `bound` and `trace` are empty where nothing was measured.
struct PlanTimes {
  bool measured = true;
  StepCost step;
  StepBound bound;
  double tokens = 0;  // of a step
  std::string basis;  // of its work
  std::optional<int64_t> steps;
  std::optional<DataShape> data;
  Trace trace;  // of a step, predicted
};
PlanTimes predict(const PlacedModel& model, const StepWork& work, std::optional<int64_t> steps);

}  // namespace hearth
