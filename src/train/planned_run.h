// The fourth stage of a run: model, data, and the plan with its times.
#pragma once

#include <memory>
#include <optional>

#include "budget/plan_changes.h"
#include "budget/plan_report.h"
#include "train/expert_choice.h"
#include "train/training_data.h"

namespace hearth {

/// Who asks for a plan: `plan` does not know which experts a run will choose.
enum class Planning : uint8_t { sizes, run };

/// A run as `plan` prints it and `train` runs it. Checked against --plan. The members are made in
/// this order, and nothing changes afterwards but where the sampler of the data stands.
struct PlannedRun {
  std::shared_ptr<const OpenedModel> opened;
  std::optional<TrainingData> data;      // none: planned without --data
  std::optional<ChosenExperts> experts;  // none: all experts
  PlanRequest request;
  PlacedModel model;
  std::optional<int64_t> steps;  // of the run, if options or data say it
  PlanTimes times;

  PlannedRun(const TrainConfig& config, std::shared_ptr<const OpenedModel> opened_model,
             Reporter& reporter, Planning planning = Planning::sizes);
  const TrainingData* rows() const { return data ? &*data : nullptr; }
};

/// What would help a run that does not fit.
struct PlanAdvice {
  std::vector<PlanChange> changes;
  std::vector<uint64_t> needed;  // by place, for the run unchanged
};
PlanAdvice advice_for(const PlannedRun& run, const TrainConfig& config);

/// Usage error with the advice, unless the plan fits.
void require_run_fits(const PlannedRun& run, const TrainConfig& config);

}  // namespace hearth
