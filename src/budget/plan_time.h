// Predicts the time of a planned run: it simulates a step with the times of cost tables, or of a quick
// measurement of the machine. Also a lower bound.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "budget/placed_model.h"
#include "data/samples/run_rows.h"
#include "data/samples/sampler.h"
#include "plan/cost_model.h"
#include "plan/step_use.h"
#include "runtime/machine_rates.h"

namespace hearth {

/// Measures the machine for a placed model, apart from places with cost tables, and adds the tables.
/// Call before planning and before memory is reserved.
/// Measures compute twice and keeps the better rates; repeats of the same shapes in a process reuse
/// them. Uses a quarter of the process's remaining budget, at most 192 MiB, and of a GPU's budget a
/// quarter, at most 8 GiB. A device in the host's memory gives none of its budget. Usage error if a
/// device is too small. With HEARTH_RATES=assumed in the environment it returns round numbers and
/// measures nothing. Measures nothing for a described machine either.
RunRates measure_run(const PlacedModel& model, const PlanRequest& request);

/// False if the plan is for another machine whose description lacks the cost table of a place that
/// computes.
bool knows_described_times(const PlacedModel& model);

/// RAII, for tests: while one exists, `measure_run` returns round numbers and measures nothing. A
/// measurement takes half a second, and tests start hundreds of runs. Results of runs do not
/// change.
class AssumedRates {
 public:
  AssumedRates();
  ~AssumedRates();
  AssumedRates(const AssumedRates&) = delete;
  AssumedRates& operator=(const AssumedRates&) = delete;
};

/// The size of the data of a run.
struct DataShape {
  RowSummary rows;        // all rows, evaluation rows included
  int64_t eval_rows = 0;  // rows that --val-size keeps for evaluation
  int64_t sequences = 0;  // of the first epoch
  int64_t tokens = 0;     // of the first epoch, repeats by weight included
  int64_t trained_tokens = 0;
  double fill = 0;   // tokens / capacity of the sequences
  double steps = 0;  // per epoch, not rounded
};

/// The work of a mean step: from the data if known, else full micro-batches.
struct StepWork {
  std::vector<BatchWork> batches;
  std::string basis;
  std::optional<DataShape> data;
};
StepWork full_step(const PlanRequest& request);
/// The mean step of the first epoch.
StepWork mean_step(const RunRows& rows, const SamplerOptions& options, const Sampler& sampler);

/// The tables of a placed model, by place.
std::vector<PlaceCosts> cost_tables(const PlacedModel& model);
/// A line for each place with a table; it names the tasks that the table does not time. The model
/// must have a training schedule.
std::vector<std::string> paced_lines(const PlacedModel& model);
/// A lower bound of a training step of this work. The model must have rates.
StepBound bound_of(const PlacedModel& model, std::span<const BatchWork> batches);

/// `work`, `step`, `use` and `bound` are empty if nothing is known of the places that compute.
struct PlanTimes {
  bool known = true;
  std::string unknown;  // why they are not known
  std::string source;   // of the times: "a quick measurement", "cost tables", "assumed rates"
  StepCost work;        // the tasks of a step, added up
  SimulatedStep step;   // how they run beside each other
  StepUse use;          // of resources, in that step
  StepBound bound;
  double tokens = 0;  // per step
  std::string basis;  // source of the step's work
  std::optional<int64_t> steps;
  std::optional<DataShape> data;
};
PlanTimes predict(const PlacedModel& model, const StepWork& work, std::optional<int64_t> steps);

}  // namespace hearth
