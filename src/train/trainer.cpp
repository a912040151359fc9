// Training: the main loop. What a step computes is the plan's affair; this file knows no mode.
#include "train/trainer.h"

#include "train/plan_file.h"
#include "train/training_run.h"

namespace hearth {

ExitCode train(const TrainConfig& options, Reporter& reporter) {
  const TrainConfig config = as_planned(options);
  TrainingRun run(config, reporter);
  const std::optional<SavedState> state = run.choose_state();
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

PlanReport plan_run(const TrainConfig& options) {
  const TrainConfig config = as_planned(options);
  const RunSetup setup = prepare_training(config);
  const TrainingData data(config, setup);
  const RunPlan plan = plan_training(config, setup, data);
  require_disk(setup, config);
  const StepBound bound = full_step_bound(plan, setup, rates_of(setup));
  require_planned(config, plan_json(plan, setup, bound));
  return {plan.fits(), plan_text(plan, setup, bound), plan_json(plan, setup, bound),
          refusal(plan, config)};
}

}  // namespace hearth
