// The data of a training run, and what it asks of the plan.
#pragma once

#include <optional>

#include "budget/plan_time.h"
#include "data/samples/run_rows.h"
#include "data/samples/sampler.h"
#include "setup/opened_model.h"
#include "setup/reporter.h"

namespace hearth {

/// Rows of training and evaluation, and what cuts batches from them.
struct TrainingData {
  RunRows rows;
  std::optional<RunRows> eval_rows;  // of --eval-data; --val-size takes them from `rows`
  Sampler sampler;
  std::optional<EvalBatches> eval;

  TrainingData(const TrainConfig& config, const OpenedModel& opened, Reporter& reporter);
  int64_t longest() const;  // row, in tokens
  uint64_t bytes() const;   // in memory, orders included
};

/// What a training run asks of its plan: bounds from the data, or without data those of the options.
PlanRequest training_request(const TrainConfig& config, const TrainingData* data);
/// The work of a mean step.
StepWork step_work(const TrainConfig& config, const PlanRequest& request, const TrainingData* data);
/// How many steps the run has, if options or data say it.
std::optional<int64_t> steps_of_run(const TrainConfig& config, const TrainingData* data);

/// The least --seq-len to advise: at least half of the rows keep a trained token. Reads the first
/// thousand rows.
int64_t shortest_useful(const TrainConfig& config, const TrainingData* data);

}  // namespace hearth
