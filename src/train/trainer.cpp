// Training: the main loop. What a step computes is the plan's affair; this file knows no mode.
#include "train/trainer.h"

#include "base/file_ops.h"
#include "train/plan_file.h"
#include "train/training_run.h"

namespace hearth {

ExitCode train(const TrainConfig& options, Reporter& reporter) {
  const TrainConfig config = as_planned(options);
  RunReporter heard(reporter);
  TrainingRun run(config, heard);
  std::optional<SavedState> state = run.choose_state();
  if (run.finished(state)) return ExitCode::done;
  run.open(state);
  if (config.eval_at_start && !state) run.evaluate("start");

  while (run.has_steps_left()) {
    const std::optional<StepResult> result = run.step();
    if (!result) return run.stop();  // a signal: the step was abandoned
    run.record(*result);
    if (run.evaluation_due()) run.evaluate("step");
    run.save_if_due();
    if (StopSignals::received() != 0 && run.has_steps_left()) return run.stop();
  }
  return run.finish();
}

PlanReport plan_run(const TrainConfig& options, Reporter& reporter, PlanDetail detail) {
  const TrainConfig config = as_planned(options);
  const RunSetup setup = prepare_planning(config);
  std::optional<TrainingData> data;
  if (!config.data.empty()) data.emplace(config, setup, reporter);
  const TrainingData* rows = data ? &*data : nullptr;
  const PlanRequest request = training_request(config, rows);
  const RunRates rates = measure_run(setup, request);
  const PlanSubject subject = subject_of(setup, measure_process(request.data_bytes));
  const RunPlan plan = make_run_plan(subject, request);
  const PlanTimes times =
      predict(setup, plan, rates, step_work(config, request, rows), run_steps(config, rows));
  require_planned(config, plan_json(plan, setup, times));
  if (!config.out.empty()) require_disk(setup, config, run_steps(config, rows));
  if (!config.trace.empty()) {
    write_file_atomically(config.trace, chrome_trace(plan.train->schedule, times.trace));
  }
  PlanReport report{plan.fits(), plan_text(plan, setup, times, detail),
                    plan_json(plan, setup, times), ""};
  if (!plan.fits()) {
    const std::vector<PlanChange> changes = changes_that_fit(subject, request, config);
    const uint64_t needed = needed_memory(subject, request);
    report.refusal = refusal(plan, changes, needed);
    report.json["needed_bytes"] = needed;
    JsonArray list;
    for (const PlanChange& change : changes) {
      list.push_back(JsonObject{{"options", change.options}, {"peak_bytes", change.peak}});
    }
    report.json["changes"] = std::move(list);
  }
  return report;
}

}  // namespace hearth
