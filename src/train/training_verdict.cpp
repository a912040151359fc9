// What a run finds out about itself at its end, and what it notes if it fails.
#include "train/lr_schedule.h"
#include "train/training_run.h"

namespace hearth {

RunFacts TrainingRun::examine() {
  RunFacts facts{.table = session_->table(),
                 .routing = routing_,
                 .experts_per_token = setup_.opened->spec.experts_per_token,
                 .frozen_at_start = frozen_at_start_,
                 .frozen_at_end = frozen_content(session_->table(), session_->pool())};
  try {
    session_->read_start();
    facts.changes = tensor_changes(session_->table(), gradients_, session_->pool());
  } catch (const Error& error) {
    if (error.code() == ExitCode::stopped) throw;
    facts.failure = error.what();  // the result is whole, so the run has not failed
  }
  facts.steps = progress_.step;
  facts.skipped = progress_.skipped;
  facts.rate_was_zero = largest_learning_rate(config_, steps_, warmup_) == 0;
  facts.tokens = progress_.tokens;
  facts.trained_tokens = progress_.trained_tokens;
  if (const Place at = setup_.placement.experts; at != kHostPlace) {
    facts.device = setup_.opened->place(at).budget.name;
  }
  facts.experts_apart = setup_.placement.experts != setup_.placement.dense;
  const JournaledRun journaled = read_journaled_run(directory_.journal());
  facts.loss_before = journaled.loss_at(0);
  facts.loss_after = journaled.loss_at(progress_.step);
  facts.planned_bytes = plan_.host().peak;
  facts.predicted_s = run_.times.step.total_s();
  if (steps_here_ > 0) facts.measured_s = step_seconds_ / static_cast<double>(steps_here_);
  return facts;
}

bool TrainingRun::tell_verdict(RunFacts facts) {
  facts.measured_bytes = *graded_[kHostPlace].measured_peak;
  const Verdict verdict = judge(facts);
  JsonObject fields{{"step", progress_.step}};
  const JsonObject& found = verdict.json.as_object();
  fields.insert(fields.end(), found.begin(), found.end());
  journal_->event("verdict", std::move(fields));
  for (const std::string& line : verdict.lines) reporter_.note(line);
  tell_verdict(verdict.text());
  return verdict.alarms.empty();
}

void TrainingRun::tell_verdict(const std::string& text) {
  if (text == "ok") return reporter_.note("verdict: ok");
  reporter_.warn_of_event("verdict: " + text);
}

ExitCode TrainingRun::code_of_end(bool ok) const {
  return config_.strict && !ok ? ExitCode::numeric : ExitCode::done;
}

void TrainingRun::note_failure(const Error& error) {
  if (!journal_ || error.code() == ExitCode::stopped) return;
  try {
    end_save(true);
  } catch (const Error&) {  // the first error is the one to report
  }
  try {
    journal_warnings();
    journal_->event("failed", {{"step", progress_.step},
                               {"code", int64_t{static_cast<int>(error.code())}},
                               {"reason", error.what()}});
  } catch (const Error&) {
  }
}

}  // namespace hearth
