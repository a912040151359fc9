// Training: the main loop. What a step computes is the plan's affair; this file knows no mode.
#include "train/trainer.h"

#include <new>

#include "base/file_ops.h"
#include "budget/plan_file.h"
#include "train/rank_options.h"
#include "train/training_run.h"

namespace hearth {

namespace {

ExitCode run_steps(TrainingRun& run, const TrainConfig& config,
                   const std::optional<SavedState>& state) {
  run.open(state);
  if (config.eval_at_start && !state) run.evaluate("start");
  if (!state) run.write_samples("start");
  if (state && run.evaluation_due()) {  // where a signal cut it off
    run.evaluate("step");
    run.save_if_due();
  }

  while (run.has_steps_left()) {
    const std::optional<StepResult> result = run.step();
    if (!result) return run.stop();  // a signal: the step was abandoned
    if (run.evaluation_due()) run.evaluate("step");
    if (!run.has_steps_left() && result->finite) run.evaluate("end");
    run.record(*result);
    run.save_if_due();
    if (run.must_stop() && run.has_steps_left()) return run.stop();
  }
  return run.finish();
}

}  // namespace

ExitCode train(const TrainConfig& options, Reporter& reporter, RankTeam* launched) {
  const TrainConfig config = with_devices_of_rank(with_shared_cores(as_planned(options)), 0);
  RunReporter heard(reporter);
  TrainingRun run(config, heard, launched);
  const std::optional<SavedState> state = run.choose_state();
  if (run.has_ended(state)) return run.report_end();
  if (!state) run.require_learning();
  try {
    return run_steps(run, config, state);
  } catch (const Error& error) {
    run.note_failure(error);
    run.end_ranks(error);
    throw;
  } catch (const std::bad_alloc&) {
    const Error error = storage_error("out of memory");
    run.note_failure(error);
    run.end_ranks(error);
    throw;
  }
}

}  // namespace hearth
