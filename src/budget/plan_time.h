// Predicts the time of a planned run: it simulates a step with the times of cost tables
// (budget/run_rates.h). Also a lower bound.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "budget/expected_routing.h"
#include "budget/placed_model.h"
#include "budget/run_rates.h"
#include "data/samples/run_rows.h"
#include "data/samples/sampler.h"
#include "plan/cost_model.h"
#include "plan/step_use.h"
#include "runtime/machine_rates.h"

namespace hearth {

/// The size of the data of a run.
struct DataShape {
  RowSummary rows;        // all rows, evaluation rows included
  int64_t eval_rows = 0;  // rows that --val-size keeps for evaluation
  int64_t sequences = 0;  // of the first epoch
  int64_t tokens = 0;     // of the first epoch, repeats by weight included
  int64_t trained_tokens = 0;
  double fill = 0;                   // tokens / capacity of the sequences
  double steps = 0;                  // per epoch, not rounded
  std::vector<std::string> digests;  // of the content of each file, in hex
};

/// The work of a mean step: from the data if known, else full micro-batches.
struct StepWork {
  std::vector<BatchWork> batches;
  std::string basis;
  std::optional<DataShape> data;
  std::shared_ptr<const ExpectedRouting> routing = {};  // null: all experts are equally popular
};
StepWork full_step(const PlanRequest& request);
/// The mean step of the first epoch.
StepWork mean_step(const RunRows& rows, const SamplerOptions& options, const Sampler& sampler);

/// A line for each place with a table: whether it is paced or where the times are from, and the tasks
/// that the table does not time. The model must have a training schedule.
std::vector<std::string> table_lines(const PlacedModel& model);
/// The table of each place, by its digest: {"host": {"digest", "source", "made"}}. Of paced places
/// the source is "paced", of a described machine "machine".
Json tables_json(const PlacedModel& model);
/// False if the plan is for another machine whose description lacks the cost table of a place that
/// computes.
bool knows_described_times(const PlacedModel& model);
/// The best rates that the run's tables show of tasks of the schedule. 0: they show none.
MachineRates shown_rates(const PlacedModel& model);
/// A lower bound of a training step of this work. The model must have rates.
StepBound bound_of(const PlacedModel& model, std::span<const BatchWork> batches);

/// `work`, `step`, `use` and `bound` are empty if nothing is known of the places that compute.
struct PlanTimes {
  bool known = true;
  std::string unknown;  // why they are not known
  std::string source;   // of the times: "cost tables", "a quick measurement", "assumed rates"
  std::vector<std::string> warnings;  // what makes them doubtful (budget/table_warnings.h)
  StepCost work;                      // the tasks of a step, added up
  SimulatedStep step;                 // how they run beside each other
  StepUse use;                        // of resources, in that step
  StepBound bound;
  double tokens = 0;       // per step
  std::string basis;       // source of the step's work
  std::string popularity;  // how popular experts are taken to be; empty: the model has none
  std::optional<int64_t> steps;
  std::optional<DataShape> data;
};
/// With the routing of the work, if times of experts are known; else all experts count as equally
/// popular.
PlanTimes predict(const PlacedModel& model, const StepWork& work, std::optional<int64_t> steps);

}  // namespace hearth
