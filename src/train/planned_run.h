// The fourth stage of a run: model, data, and the plan with predicted times.
#pragma once

#include <memory>
#include <optional>

#include "budget/plan_changes.h"
#include "budget/plan_report.h"
#include "plan/decisions/recorded_splits.h"
#include "train/expert_choice.h"
#include "train/expert_sample.h"
#include "train/training_data.h"

namespace hearth {

/// Purpose of a plan. `sizes`: assume placeholder experts. `run`: choose the experts.
enum class Planning : uint8_t { sizes, run };

struct OtherRanks;   // budget/zebra_choice.h
class RankMachines;  // train/other_ranks.h

/// A run that `plan` prints and `train` executes. Checked against --plan. Members are initialised
/// in this order. Afterwards only the sampler's position in the data changes.
struct PlannedRun {
  std::shared_ptr<const OpenedModel> opened;
  std::optional<TrainingData> data;      // none: no --data
  TrainConfig config;                    // with what the data chose
  std::optional<SampleCounts> sample;    // of expert use; none: it is not known
  std::optional<ChosenExperts> experts;  // none: all experts
  PlanRequest request;
  PlacedModel model;
  std::optional<int64_t> steps;  // of the run, if options or data determine it
  PlanTimes times;
  std::shared_ptr<const RecordedSplits> repeated;  // decisions about experts; null: the policy's
  std::vector<PlacedModel> others;  // of ranks 1 to N - 1, if they are threads of this process

  PlannedRun(const TrainConfig& given, std::shared_ptr<const OpenedModel> opened_model,
             Reporter& reporter, Planning planning = Planning::sizes);
  const TrainingData* rows() const { return data ? &*data : nullptr; }

 private:
  /// What is known of the popularity of experts is among it.
  StepWork sampled_work() const;
  std::optional<ChosenPolicy> chosen_policy(Planning planning, RunTables& tables,
                                            Reporter& reporter);
  OtherRanks other_ranks(RankMachines& machines, Planning planning) const;
  void plan_others(RankMachines& machines, Planning planning);
  void count_planning();
};

/// The model of another rank, with its own plan. It has no evaluation and writes no samples. `request`:
/// of the run; `leader`: of rank 0, which chose the group and whether to compute again.
/// `process`: what the rank's process takes before it plans; none: what this one takes.
PlacedModel placed_for_rank(TrainedModel model, PlanRequest request, const TrainSchedule& leader,
                            int32_t rank, std::optional<ProcessMemory> process = {});

/// Advice for a run that does not fit.
struct PlanAdvice {
  std::vector<PlanChange> changes;
  std::vector<uint64_t> needed;  // per place, for the unchanged run
};
PlanAdvice advice_for(const PlannedRun& run, const TrainConfig& config);

/// Usage error with advice, unless the plan fits.
void require_run_fits(const PlannedRun& run, const TrainConfig& config);

}  // namespace hearth
