// The end of a run: after a signal, after an error, after the last step with result and verdict.
#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <string_view>

#include "base/counted.h"
#include "base/file_ops.h"
#include "base/stop.h"
#include "base/system.h"
#include "budget/plan_grade.h"
#include "plan/timeline.h"
#include "state/state_load.h"
#include "train/card_rows.h"
#include "train/result.h"
#include "train/training_run.h"

namespace hearth {

/// Findings that are shown at the end of every run. The journal and the page have all of them.
static bool is_main_finding(const std::string& line) {
  constexpr std::array<std::string_view, 4> kMain{
      "experts: ", "training loss: ", "evaluation: ", "plan: "};
  return std::any_of(kMain.begin(), kMain.end(),
                     [&](std::string_view start) { return line.starts_with(start); });
}

/// Of the places that compute experts.
static std::vector<std::string> names_of_experts(const PlacedModel& model) {
  std::vector<Place> places = expert_places(model);
  if (places.empty()) {  // at their layers' stages
    for (const Stage& stage : model.placement.stages) {
      if (std::ranges::find(places, stage.place) == places.end()) places.push_back(stage.place);
    }
  }
  std::vector<std::string> names;
  for (const Place at : places) {
    names.push_back(at == kHostPlace ? "cpu" : model.opened->place(at).budget.name);
  }
  return names;
}

ExitCode TrainingRun::stop() {
  const bool is_signal = signal() != 0;
  if (is_signal) {
    logs_->journal.event("signal", {{"signal", signal()}, {"step", progress_.step}});
  } else {
    logs_->journal.event("max_time", {{"seconds", *config_.max_time}, {"step", progress_.step}});
  }
  if (progress_.step > 0 && !holds_best_) saves_->save_now();
  if (crew_) crew_->let_go();
  reporter_.note(
      (is_signal ? "stopped by a signal after step " : "the time is over after step ") +
      std::to_string(progress_.step) +
      (progress_.step > 0 ? ", the state is saved; the same command resumes from there" : ""));
  return ExitCode::stopped;
}

std::optional<ScoredState> TrainingRun::older_result() {
  if (!config_.load_best) return std::nullopt;
  saves_->end(true);
  const std::optional<ScoredState> best = best_.best();
  if (!best) {
    reporter_.warn_of_event(
        "no evaluation after a step has a finite loss, so no state is the best; the result is the "
        "last step's");
    return std::nullopt;
  }
  return best->step == progress_.step ? std::nullopt : best;
}

void TrainingRun::load_best(const ScoredState& best) {
  holds_best_ = true;
  try {
    const std::string directory = directory_.states() + "/" + state_directory_name(best.step);
    StateRegistry weights;
    session_->register_weights(weights);
    load_weights(weights, open_state(directory));
  } catch (const DamagedState& damage) {
    throw storage_error(
        std::string(damage.what()) +
        "; it is the best state, of which the result would be made; 'hearth export' "
        "makes a result of any other state");
  }
}

void TrainingRun::note_early_end() {
  const int64_t evaluations = best_.without_best();
  logs_->journal.event("early_stop", {{"step", progress_.step}, {"evaluations", evaluations}});
  std::string text = "stopped early after step " + std::to_string(progress_.step) + ": " +
                     counted(evaluations, "evaluation") + " in a row without a new best";
  if (const auto& lowest = best_.lowest()) {
    char loss[32];
    std::snprintf(loss, sizeof loss, "%.4f", lowest->loss);
    text += std::string("; the best is ") + loss + " at step " + std::to_string(lowest->step);
  }
  reporter_.note(text);
}

ExitCode TrainingRun::finish() {
  settle();
  const bool is_finite = progress_.updates > 0 && progress_.skipped_in_a_row == 0;
  if (is_finite) evaluate("end");
  if (config_.final_state || best_.wants(progress_.step)) saves_->begin();
  if (!is_finite) {
    saves_->end(true);
    throw numeric_error(
        "the run ends with a loss or gradient that is not finite; no result is written");
  }
  if (ends_early()) note_early_end();
  const std::optional<ScoredState> older = older_result();
  if (!older) write_samples("end");
  saves_->end(true);
  release_freed_memory();                    // what follows is planned from here
  if (crew_) crew_bytes_ = crew_->let_go();  // no step follows
  const std::string failed_save = saves_->failure();
  if (config_.final_state && !failed_save.empty()) throw storage_error(failed_save);
  std::optional<RunFacts> facts;
  try {
    if (older) {  // the verdict is on the whole run, so it comes before the weights change
      facts.emplace(examine());
      facts->result_step = older->step;
      facts->loss_after = older->loss;
      load_best(*older);
      write_samples("end");
    }
    write_result(session_->table(), *model_.opened->checkpoint, config_, result_changes_,
                 rows_of_card(older), directory_);
    if (!facts) facts.emplace(examine());
  } catch (const Error& error) {
    if (error.code() == ExitCode::stopped) return stop();
    throw;
  }
  if (!config_.trace.empty()) {
    write_file_atomically(config_.trace,
                          chrome_trace(model_.plan.train->schedule, session_->trace(),
                                       model_.opened->devices.names(), session_->block_copies()));
  }
  facts->measured_bytes = grade_plan();
  note_paces();
  const bool ok = give_verdict(*facts);
  JsonObject finished{{"step", progress_.step}, {"run", to_json(identity_)}};
  if (const auto best = best_.best()) {
    finished.emplace_back("best", JsonObject{{"step", best->step}, {"eval_loss", best->loss}});
  }
  logs_->journal.event("finished", std::move(finished));
  tell_result(model_.table, config_, directory_, reporter_);
  if (!failed_save.empty()) throw storage_error(failed_save + "; the result is complete");
  return code_of_end(ok);
}

CardRows TrainingRun::rows_of_card(const std::optional<ScoredState>& older) const {
  if (older) {
    const std::string state = directory_.states() + "/" + state_directory_name(older->step);
    return card_rows(open_state(state).extra, older->step, directory_.journal());
  }
  Json extra = to_json(identity_);
  extra["losses"] = losses_.to_json();
  return card_rows(extra, progress_.step, directory_.journal());
}

RunFacts TrainingRun::examine() {
  RunFacts facts{.table = session_->table(),
                 .routing = routing_,
                 .experts_per_token = model_.opened->spec.experts_per_token,
                 .frozen_at_start = frozen_at_start_,
                 .frozen_at_end = frozen_content(session_->table(), session_->pool())};
  try {
    release_freed_memory();  // of the result, as its buffers come again
    session_->read_start();
    facts.changes = tensor_changes(session_->table(), gradients_, session_->pool());
  } catch (const Error& error) {
    if (error.code() == ExitCode::stopped) throw;
    facts.failure = error.what();  // the result is whole, so the run has not failed
  }
  facts.steps = progress_.step;
  facts.skipped = progress_.skipped;
  facts.losses = losses_;
  facts.rate_was_zero = largest_learning_rate(config_, course_) == 0;
  facts.tokens = progress_.tokens;
  facts.trained_tokens = progress_.trained_tokens;
  facts.experts_apart = model_.placement.experts_apart();
  facts.experts_at = names_of_experts(model_);
  const JournaledRun journaled = read_journaled_run(directory_.journal());
  facts.loss_before = journaled.loss_at(0);
  facts.loss_after = journaled.loss_at(progress_.step);
  facts.planned_bytes = model_.plan.host().peak;
  facts.predicted_s = run_.times.step.time_s;
  if (steps_here_ > 0) facts.measured_s = step_seconds_ / static_cast<double>(steps_here_);
  return facts;
}

void TrainingRun::note_paces() const {
  for (const auto& [place, tasks] : paced_) {
    char by[32] = "";
    if (tasks.late > 0) std::snprintf(by, sizeof by, ", by %.3g s in all", tasks.late_s);
    reporter_.note(place + ": " + std::to_string(tasks.late) + " of " +
                   counted(tasks.tasks, "paced task") + " took longer than the cost table says" +
                   by);
  }
}

uint64_t TrainingRun::grade_plan() {
  MeasuredMemory measured = session_->measured_memory();
  measured.saving = saves_->memory_bytes();
  measured.ranks = std::accumulate(crew_bytes_.begin(), crew_bytes_.end(), uint64_t{0});
  const std::vector<PlaceLines> places = graded(model_.plan, measured);
  Json json = plan_json(model_, run_.times, places, crew_bytes_);
  if (steps_here_ > 0) {
    json["measured_time_s"] = step_seconds_ / static_cast<double>(steps_here_);
    json["measured_best_time_s"] = best_step_s_;
    json["measured_steps"] = steps_here_;
    const std::vector<BlockCopy>& copies = session_->block_copies();
    const StepTimelines step{model_.plan.train->schedule, run_.times.step.trace,
                             session_->trace(),           progress_.step,
                             run_.times.step.copies,      copies};
    json["task_times"] = task_times_json(step);
    json["timeline"] = timeline_json(step, model_.opened->devices.names());
  }
  directory_.write_plan(json);
  return *places[kHostPlace].measured_peak;
}

bool TrainingRun::give_verdict(const RunFacts& facts) {
  const Verdict verdict = judge(facts);
  JsonObject fields{{"step", progress_.step}};
  const JsonObject& found = verdict.json.as_object();
  fields.insert(fields.end(), found.begin(), found.end());
  logs_->journal.event("verdict", std::move(fields));
  for (const std::string& line : verdict.lines) {
    if (is_main_finding(line)) {
      reporter_.note(line);
    } else {
      reporter_.detail(line);
    }
  }
  const bool ok = verdict.alarms.empty();
  if (ok) {
    reporter_.note("verdict: ok");
  } else {
    reporter_.warn_of_event("verdict: " + verdict.text());
  }
  return ok;
}

ExitCode TrainingRun::code_of_end(bool ok) const {
  return config_.strict && !ok ? ExitCode::numeric : ExitCode::done;
}

void TrainingRun::end_ranks(const Error& error) {
  if (!crew_ || error.code() == ExitCode::stopped) return;
  throw crew_->fail(error);
}

void TrainingRun::note_rank(const PeerFailure& failure) {
  std::string_view why;
  switch (failure.fault) {
    case PeerFault::died: why = "died"; break;
    case PeerFault::silent: why = "silent"; break;
    case PeerFault::cut_off: why = "cut off"; break;
    case PeerFault::own_error:
    case PeerFault::mismatch: return;
  }
  const CommLabel& label = failure.at.label;
  logs_->journal.event("rank_failed", {{"step", label.step},
                                       {"rank", int64_t{failure.rank}},
                                       {"host", failure.host},
                                       {"collective", std::string(name_of(failure.at.kind)) + " " +
                                                          std::to_string(label.number)},
                                       {"why", std::string(why)}});
}

void TrainingRun::note_failure(const Error& error) {
  if (!logs_ || error.code() == ExitCode::stopped) return;
  try {
    if (saves_) saves_->end(true);
  } catch (const Error&) {  // the first error is the one to report
  }
  try {
    logs_->note_warnings(progress_.step);
    if (const auto* peer = dynamic_cast<const PeerError*>(&error)) note_rank(peer->failure());
    logs_->journal.event("failed", {{"step", progress_.step},
                                    {"code", int64_t{static_cast<int>(error.code())}},
                                    {"reason", error.what()}});
  } catch (const Error&) {
  }
}

}  // namespace hearth
