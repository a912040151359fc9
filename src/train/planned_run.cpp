#include "train/planned_run.h"

#include "budget/plan_file.h"
#include "budget/plan_fit.h"
#include "setup/row_requests.h"
#include "train/known_tables.h"

namespace hearth {

namespace {

std::optional<TrainingData> data_of(const TrainConfig& config, const OpenedModel& opened,
                                    Reporter& reporter) {
  if (config.data.empty()) return std::nullopt;
  return std::optional<TrainingData>(std::in_place, config, opened, reporter);
}

/// The experts that get adapters if --experts chooses them: those of a saved state, else those that a
/// first pass shows. nullopt: all experts.
std::optional<ChosenExperts> experts_of(const TrainConfig& config,
                                        const std::shared_ptr<const OpenedModel>& opened,
                                        const TrainingData& data, Reporter& reporter) {
  if (config.experts_top == 0) return std::nullopt;
  std::optional<ChosenExperts> chosen = saved_experts(config, opened->spec);
  if (chosen) return chosen;
  reporter.note("choosing experts by a first pass over a sample of the data");
  const SampleCounts sample =
      count_expert_tokens(opened, config, data.rows.training(), data.bytes());
  return choose_experts(sample.counts, config.experts_top, sample.tokens);
}

TrainedModel trained_by(const TrainConfig& config, const std::shared_ptr<const OpenedModel>& opened,
                        const std::optional<ChosenExperts>& experts) {
  return experts ? trained_model(opened, config, experts->experts) : trained_model(opened, config);
}

/// Options that cannot go together are refused before data are read.
std::shared_ptr<const OpenedModel> checked(std::shared_ptr<const OpenedModel> opened,
                                           const TrainConfig& config) {
  trained_model(opened, config);
  return opened;
}

}  // namespace

PlannedRun::PlannedRun(const TrainConfig& given, std::shared_ptr<const OpenedModel> opened_model,
                       Reporter& reporter, Planning planning)
    : opened(checked(std::move(opened_model), given)),
      data(data_of(given, *opened, reporter)),
      config(data ? with_choices(given, data->choices) : given),
      experts(planning == Planning::run ? experts_of(config, opened, *data, reporter)
                                        : std::nullopt),
      request(training_request(config, rows())),
      model(place_model(trained_by(config, opened, experts), request, Rates::measured,
                        known_tables(config, *opened))),
      steps(steps_of_run(config, rows())),
      times(predict(model, step_work(config, request, rows()), steps)) {
  warn_of_positions(config, opened->spec, data ? data->longest() : 0);
  require_planned(config, plan_json(model, times, model.plan.places));
}

PlanAdvice advice_for(const PlannedRun& run, const TrainConfig& config) {
  PlanRequest request = run.request;
  request.shortest = shortest_useful(config, run.rows());
  const PlanSubject subject = subject_of(run.model);
  return {changes_that_fit(run.opened, subject, request, config), needed_memory(subject, request)};
}

void require_run_fits(const PlannedRun& run, const TrainConfig& config) {
  if (run.model.plan.fits()) return;
  const PlanAdvice advice = advice_for(run, config);
  throw usage_error(refusal(run.model.plan, advice.changes, advice.needed));
}

}  // namespace hearth
