// The data of a training run, and the plan request that follows from it.
#pragma once

#include <optional>

#include "budget/plan_time.h"
#include "data/samples/run_rows.h"
#include "data/samples/sampler.h"
#include "setup/opened_model.h"
#include "setup/reporter.h"
#include "train/run_length.h"

namespace hearth {

/// The rows of training and evaluation, and the samplers.
struct TrainingData {
  RunRows rows;
  DataChoices choices;               // packing and epochs
  std::optional<RunRows> eval_rows;  // of --eval-data; with --val-size they are in `rows`
  Sampler sampler;
  std::optional<EvalBatches> eval;

  TrainingData(const TrainConfig& config, const OpenedModel& opened, Reporter& reporter);
  int64_t longest() const;  // longest row, in tokens
  uint64_t bytes() const;   // of memory, epoch orders included
};

/// The request for a plan, with bounds from the data, or without data from the options.
PlanRequest training_request(const TrainConfig& config, const TrainingData* data);
/// The work of a mean step.
StepWork step_work(const TrainConfig& config, const PlanRequest& request, const TrainingData* data);
/// Number of steps of the run, if options or data determine it.
std::optional<int64_t> steps_of_run(const TrainConfig& config, const TrainingData* data);

/// The least --seq-len to advise: with it, at least half of the rows keep a trained token. Reads
/// the first kRowsSeen rows.
int64_t shortest_useful(const TrainConfig& config, const TrainingData* data);

}  // namespace hearth
