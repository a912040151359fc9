// What happens before, between and after the steps of a run.
#include "train/training_run.h"

#include <algorithm>
#include <cmath>

#include "base/system.h"
#include "base/version.h"
#include "train/lr_schedule.h"

namespace hearth {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

TrainingRun::TrainingRun(const TrainConfig& config, Reporter& reporter)
    : config_(config),
      reporter_(reporter),
      directory_(config.out),
      setup_(prepare_training(config)),
      data_(config, setup_),
      rates_(rates_of(setup_)),
      plan_(plan_training(config, setup_, data_)) {
  if ((config.eval_every || config.eval_at_start) && config.eval_data.empty()) {
    throw usage_error("--eval-every and --eval-at-start need --eval-data");
  }
  steps_ = config.steps.value_or(data_.sampler.steps_for_epochs(config.epochs));
  warmup_ = warmup_steps(config, steps_);
  require_fit(plan_, config);
  require_disk(setup_, config);
}

std::optional<SavedState> TrainingRun::choose_state() {
  identity_ = run_identity(config_, setup_, data_.digests());
  const auto reject = [this](const RejectedState& state) {
    reporter_.warn("saved state passed over: " + state.directory +
                   (state.file.empty() ? "" : "/" + state.file) + ": " + state.reason);
    rejected_.push_back(state);
  };
  std::optional<SavedState> state = find_newest_state(directory_.path(), reject);
  if (state && config_.resume == ResumeMode::never) {
    throw usage_error("--resume never, but " + directory_.path() +
                      " holds saved state; give another --out or remove it");
  }
  if (!state && config_.resume == ResumeMode::from_directory) {
    const std::string name = config_.resume_from.substr(config_.resume_from.find_last_of('/') + 1);
    if (step_of_state_directory(name)) {
      state = verify_state(config_.resume_from);
    } else {
      state = find_newest_state(config_.resume_from, reject);
      rejected_.clear();  // of another run: not ours to set aside
    }
    if (!state) throw usage_error("--resume " + quoted(config_.resume_from) + ": no saved state");
  }
  return state;
}

bool TrainingRun::finished_without_state() const {
  if (file_info(directory_.result()).kind != FileKind::directory) return false;
  directory_.clean();
  reporter_.note("already finished: " + directory_.result());
  return true;
}

void TrainingRun::open(const std::optional<SavedState>& state) {
  std::vector<std::string> changes;
  if (state) changes = check_identity(state->extra, identity_, config_);
  session_ = std::make_unique<Session>(setup_, plan_);
  session_->register_state(registry_);
  register_progress(registry_, progress_, data_.sampler);
  session_->read_weights();
  if (state) {
    load_state(registry_, *state);  // what is trained; frozen tensors stay those of the checkpoint
    const bool ours = state->directory.starts_with(directory_.states());
    if (ours) saved_step_ = progress_.step;
  }
  directory_.clean();
  set_aside(rejected_);
  directory_.write_config(config_.recorded);
  directory_.write_plan(plan_json(plan_, setup_, full_step_bound(plan_, setup_, rates_)));
  metrics_ = std::make_unique<MetricsLog>(directory_.metrics());
  journal_ = std::make_unique<Journal>(directory_.journal());
  scalars_ = std::make_unique<TensorBoardLog>(directory_.path());
  for (const RejectedState& bad : rejected_) {
    journal_->event("state_rejected",
                    {{"state", bad.directory}, {"file", bad.file}, {"reason", bad.reason}});
  }
  if (state) {
    JsonArray list;
    for (const std::string& change : changes) list.push_back(change);
    journal_->event(
        "resume",
        {{"step", progress_.step}, {"state", state->directory}, {"changes", std::move(list)}});
  } else {
    journal_->event("start", {{"steps", steps_}, {"version", build_info().version}});
  }
  journal_->event("plan",
                  {{"parallel", "single"},
                   {"devices", JsonArray{Json("host")}},
                   {"workers", int64_t{setup_.workers}},
                   {"compute_dtype", setup_.settings.compute == Compute::bf16 ? "bf16" : "f32"},
                   {"group", plan_.train->group},
                   {"recompute", plan_.train->recompute ? "blocks" : "none"}});
  if (!changes.empty()) {
    reporter_.warn(
        "options changed since the saved state: the end will not have the bits of an "
        "uninterrupted run");
  }
  describe(changes);
  step_begin_ = last_save_ = Clock::now();
}

void TrainingRun::describe(const std::vector<std::string>& changes) {
  const int64_t trained = trained_parameters(setup_.table);
  int64_t all = 0;
  for (const Tensor& t : setup_.table.tensors()) all += t.size();
  reporter_.note(setup_.spec.family + ": " + std::to_string(all) + " parameters, " +
                 std::to_string(trained) + " trained; computed in " +
                 (setup_.settings.compute == Compute::bf16 ? "bf16" : "f32") + " on " +
                 std::to_string(setup_.workers) + " workers");
  const RowTotals& totals = data_.rows.totals;
  reporter_.note("data: " + std::to_string(totals.rows) + " rows, " +
                 std::to_string(totals.tokens) + " tokens, " +
                 std::to_string(totals.trained_tokens) + " trained; " +
                 std::to_string(totals.truncated) + " rows cut, " + std::to_string(totals.dropped) +
                 " dropped");
  reporter_.note("steps: " + std::to_string(steps_) + ", warm-up " + std::to_string(warmup_) +
                 "; auxiliary loss coefficient " + Json(setup_.settings.aux_loss).dump() +
                 "; memory planned " + std::to_string(plan_.peak >> 20) + " MiB");
  std::string level = "determinism: replay-exact on this machine and build, for any --threads";
  for (const std::string& change : changes) level += "; changed: " + change;
  reporter_.note(level);
  if (progress_.step > 0) {
    reporter_.note("resumed at step " + std::to_string(progress_.step) + " of " +
                   std::to_string(steps_));
  }
}

std::optional<StepResult> TrainingRun::step() {
  step_begin_ = Clock::now();
  const SamplerCursor before = data_.sampler.cursor();
  const std::vector<MicroBatch> batches = data_.sampler.next_step();
  step_lr_ = learning_rate(config_.lr_schedule, config_.lr, progress_.step, steps_, warmup_);
  auto result = session_->train_step(batches, step_lr_, progress_.updates + 1,
                                     [] { return StopSignals::received() != 0; });
  if (result) {
    count(*result);
  } else {
    data_.sampler.seek(before);
  }
  return result;
}

void TrainingRun::count(const StepResult& result) {
  ran_a_step_ = true;
  ++progress_.step;
  progress_.tokens += result.tokens;
  progress_.trained_tokens += result.trained_tokens;
  progress_.cursor = data_.sampler.cursor();
  if (result.finite) {
    ++progress_.updates;
    progress_.skipped_in_a_row = 0;
  } else {
    ++progress_.skipped;
    ++progress_.skipped_in_a_row;
  }
}

void TrainingRun::record(const StepResult& result) {
  StepMetrics m;
  m.step = progress_.step;
  m.loss =
      result.trained_tokens > 0 ? result.loss_sum / static_cast<double>(result.trained_tokens) : 0;
  m.aux_loss = result.aux_loss;
  m.grad_norm = result.grad_norm;
  m.lr = step_lr_;
  m.tokens = result.tokens;
  m.trained_tokens = result.trained_tokens;
  m.time_s = seconds_since(step_begin_);
  m.tokens_per_s = static_cast<double>(result.tokens) / m.time_s;
  const StepBound bound =
      step_bound(plan_.train->schedule, result.work, rates_, trained_parameters(setup_.table));
  m.bound_pct = 100 * bound.total_s() / m.time_s;
  m.peak_rss_bytes = peak_resident_bytes();
  m.busy = {{"host", result.busy_s}};
  m.expert_load = result.expert_load;
  m.skipped = !result.finite;
  metrics_->append(m);
  scalars_->step(m);
  reporter_.step(m, steps_);
  if (!result.finite) {
    reporter_.warn("step " + std::to_string(m.step) +
                   ": loss or gradient not finite, weights unchanged");
    journal_->event("skipped_step",
                    {{"step", m.step}, {"loss", m.loss}, {"grad_norm", m.grad_norm}});
    if (progress_.skipped_in_a_row >= 3) {
      throw numeric_error("loss or gradient not finite in three steps in a row, the last is step " +
                          std::to_string(m.step) + "; a lower --lr may help");
    }
  }
}

bool TrainingRun::evaluation_due() const {
  return config_.eval_every && progress_.step % *config_.eval_every == 0;
}

void TrainingRun::evaluate(const char* when) {
  const auto batches = data_.eval(config_);
  if (!batches) return;
  const EvalResult result =
      session_->evaluate(*batches, [] { return StopSignals::received() != 0; });
  if (StopSignals::received() != 0) return;
  journal_->event("eval", {{"step", progress_.step},
                           {"when", when},
                           {"loss", result.loss()},
                           {"trained_tokens", result.trained_tokens}});
  scalars_->scalars(progress_.step, {{"eval/loss", result.loss()}});
  reporter_.note("evaluation at step " + std::to_string(progress_.step) + ": loss " +
                 Json(result.loss()).dump());
}

void TrainingRun::save_if_due() {
  const Interval& every = config_.save_every;
  const bool by_steps = every.steps && *every.steps > 0 && progress_.step % *every.steps == 0;
  const bool by_time = every.seconds && seconds_since(last_save_) >= *every.seconds;
  if (by_steps || by_time) save();
}

void TrainingRun::save() {
  if (saved_step_ == progress_.step) return;
  metrics_->sync();
  save_state(registry_, directory_.path(), progress_.step, static_cast<int>(config_.keep),
             identity_);
  saved_step_ = progress_.step;
  last_save_ = Clock::now();
  journal_->event("state_saved", {{"step", progress_.step}});
}

ExitCode TrainingRun::stop() {
  journal_->event("signal", {{"signal", StopSignals::received()}, {"step", progress_.step}});
  if (progress_.step > 0) save();
  reporter_.note("stopped by a signal after step " + std::to_string(progress_.step) +
                 (progress_.step > 0 ? ", state saved; the same command goes on from there" : ""));
  return ExitCode::stopped;
}

ExitCode TrainingRun::finish() {
  if (config_.final_state) save();
  if (progress_.updates == 0 || progress_.skipped_in_a_row > 0) {
    throw numeric_error(
        "the run ends with a loss or gradient that is not finite; no result written");
  }
  if (ran_a_step_ && !evaluation_due()) evaluate("end");
  const std::string result = directory_.result();
  const bool there = file_info(result).kind == FileKind::directory;
  if (there && !ran_a_step_) {
    reporter_.note("already finished: " + result);
    return ExitCode::done;
  }
  if (there) rename_no_replace(result, directory_.path() + "/.trash-model");
  write_checkpoint(setup_.table, setup_.checkpoint, result);
  remove_tree(directory_.path() + "/.trash-model");
  if (!config_.trace.empty()) {
    write_file_atomically(config_.trace, chrome_trace(plan_.train->schedule, session_->trace()));
  }
  journal_->event("finished", {{"step", progress_.step}});
  reporter_.note("finished: " + result);
  return ExitCode::done;
}

}  // namespace hearth
