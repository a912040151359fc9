// Before the first step: what may be resumed, memory, weights, logs.
#include "train/training_run.h"

#include <algorithm>

#include "base/paths.h"
#include "base/version.h"
#include "train/lr_schedule.h"
#include "setup/row_requests.h"
#include "train/run_disk.h"

namespace hearth {

TrainingRun::TrainingRun(const TrainConfig& config, RunReporter& reporter)
    : config_(config),
      reporter_(reporter),
      directory_(config.out, config.method == Method::lora ? "adapter" : "model"),
      run_(config, open_model(config), reporter, Planning::run),
      setup_(run_.model),
      data_(*run_.data),
      plan_(run_.model.plan),
      steps_(*run_.steps),
      warmup_(warmup_steps(config, steps_)),
      routing_(setup_.opened->spec),
      templates_(carried_templates(template_options(config))),
      result_changes_(template_changes(templates_, config.model, config.follow_links)) {
  require_run_fits(run_, config);
}

std::optional<SavedState> TrainingRun::choose_state() {
  identity_ = run_identity(
      config_, setup_, data_.rows.digests(),
      data_.eval_rows ? data_.eval_rows->digests() : std::vector<std::pair<std::string, Digest>>{});
  if (run_.experts) identity_["experts"] = run_.experts->record;
  if (!templates_.empty()) identity_["templates"] = templates_json(templates_);
  if (config_.val_size > 0) identity_["val-rows"] = data_.rows.split().hex();
  const auto reject = [this](const RejectedState& state) {
    reporter_.warn_of_event(state.message());
    rejected_.push_back(state);
  };
  search_.emplace(directory_.path(), reject);
  std::optional<SavedState> state = search_->next();
  if (state && config_.resume == ResumeMode::never) {
    throw usage_error("--resume never, but " + directory_.path() +
                      " holds saved state; give another --out or remove it");
  }
  if (state && config_.resume == ResumeMode::from_directory) {
    reporter_.warn("--resume " + quoted(config_.resume_from) +
                   " is not used: " + directory_.path() + " holds saved state of its own");
  }
  if (!state && config_.resume == ResumeMode::from_directory) {
    const std::string from = without_trailing_slashes(config_.resume_from);
    if (step_of_state_directory(from)) {
      if (file_info(from).kind == FileKind::none) {
        throw usage_error("--resume " + quoted(config_.resume_from) +
                          ": no such state; 'hearth inspect' of its run directory lists those "
                          "that are there");
      }
      search_.reset();
      state = open_state(from);
    } else {
      search_.emplace(from, reject);
      state = search_->next();
    }
    if (!state) throw usage_error("--resume " + quoted(config_.resume_from) + ": no saved state");
  }
  return state;
}

void TrainingRun::accept(const SavedState& state) {
  try {
    changes_ = check_identity(state.extra, identity_, config_);
  } catch (const Error& error) {
    if (error.code() != ExitCode::storage) throw;
    throw storage_error(state.directory + "/manifest.json: " + error.what());
  }
  if (state.step > steps_) {
    throw usage_error("--steps: the run would end at step " + std::to_string(steps_) + ", but " +
                      state.directory + " is of step " + std::to_string(state.step) +
                      "; ask for as many at least, or begin in another --out");
  }
}

bool TrainingRun::finished(std::optional<SavedState>& state) {
  if (state) accept(*state);
  if (file_info(directory_.result()).kind != FileKind::directory) return false;
  if (!state) require_own_result();
  const auto not_at_end = [&] { return !state || state->step < steps_; };
  if (not_at_end() && journaled_end(directory_.journal()) != steps_) return false;
  // A resume would notice damage as it reads; here nothing else reads the state.
  while (state && is_ours(*state)) {
    try {
      verify_state(state->directory);
      break;
    } catch (const DamagedState& damage) {
      search_->reject(*state, damage);
    }
    state = search_->next();
    if (state) accept(*state);
  }
  if (not_at_end() && !rejected_.empty()) return false;
  directory_.clean();
  if (!rejected_.empty()) {
    journal_ = std::make_unique<Journal>(directory_.journal());
    settle_rejected();
  }
  reporter_.note("already finished: " + directory_.result());
  return true;
}

ExitCode TrainingRun::code_of_finished() {
  const auto alarm = journaled_alarm(directory_.journal());
  if (alarm) tell_verdict("alarm: " + *alarm);
  return code_of_end(!alarm);
}

void TrainingRun::require_own_result() {
  const bool of_a_run = file_info(directory_.journal()).kind != FileKind::none ||
                        file_info(directory_.metrics()).kind != FileKind::none;
  const std::string result = directory_.result();
  if (!of_a_run) {
    throw usage_error("--out " + quoted(directory_.path()) + ": holds a directory " +
                      quoted(result.substr(result.rfind('/') + 1)) +
                      " that no run left there; choose another one");
  }
  // Without a saved state the journal alone tells which run has ended here.
  const std::optional<Json> run = journaled_run(directory_.journal());
  if (run) check_identity(*run, identity_, config_);
}

SavedState TrainingRun::load(SavedState state) {
  while (true) {
    try {
      load_state(registry_, state);
      return state;
    } catch (const DamagedState&) {
      std::optional<DamagedState> found;
      try {
        verify_state(state.directory);
      } catch (const DamagedState& damage) {  // which says where the damage is
        found = damage;
      }
      if (!found) throw;           // whole, but not of this run's shape
      if (!search_) throw *found;  // --resume named this one state
      search_->reject(state, *found);
    }
    const auto older = search_->next();
    HEARTH_CHECK(older, "resume: a search that ends without an error");
    accept(*older);
    state = *older;
  }
}

void TrainingRun::open(const std::optional<SavedState>& chosen) {
  std::optional<SavedState> state = chosen;
  require_disk(setup_, config_, steps_);
  require_folder_of_trace(config_);
  session_ = std::make_unique<Session>(setup_);
  session_->register_state(registry_);
  register_progress(registry_, progress_, data_.sampler);
  routing_.register_state(registry_);
  session_->read_weights();
  if (state) {
    state = load(*state);  // what is trained; frozen tensors stay those of the checkpoint
    if (is_ours(*state)) saved_step_ = progress_.step;
    if (!is_ours(*state)) rejected_.clear();  // of another run: not ours to set aside
  }
  if (state && (!is_ours(*state) ||
                (data_.eval && journaled_evaluation(directory_.journal(), progress_.step)))) {
    evaluated_step_ = progress_.step;
  }
  frozen_at_start_ = frozen_content(session_->table(), session_->pool());
  identity_["determinism"] = determinism_record(state ? &*state : nullptr, changes_);
  directory_.clean();
  directory_.write_config(config_.recorded);
  directory_.write_plan(plan_json(setup_, run_.times, plan_.places));
  metrics_ = std::make_unique<MetricsLog>(directory_.metrics());
  journal_ = std::make_unique<Journal>(directory_.journal());
  scalars_ = std::make_unique<TensorBoardLog>(directory_.path());
  settle_rejected();
  if (state && is_ours(*state)) {
    keep_newest_states(directory_.path(), static_cast<int>(config_.keep));
  }
  if (state) {
    JsonArray list;
    for (const std::string& change : changes_) list.push_back(change);
    journal_->event(
        "resume",
        {{"step", progress_.step}, {"state", state->directory}, {"changes", std::move(list)}});
  } else {
    journal_->event("start", {{"steps", steps_}, {"version", build_info().version}});
  }
  if (run_.experts && !(state && is_ours(*state))) {
    journal_->event("experts", run_.experts->record.as_object());
  }
  journal_->event("plan", {{"parallel", std::string(default_planner().name())},
                           {"devices", devices_json(setup_)},
                           {"workers", int64_t{setup_.opened->workers}},
                           {"compute_dtype", name_of(setup_.settings.compute)},
                           {"group", plan_.train->group},
                           {"recompute", plan_.train->recompute ? "blocks" : "none"},
                           {"determinism", *identity_.find("determinism")},
                           {"family", setup_.opened->spec.family},
                           {"parameters", all_parameters(setup_.table)},
                           {"trained_parameters", trained_parameters(setup_.table)}});
  describe();
  journal_warnings();
  step_begin_ = last_save_ = std::chrono::steady_clock::now();
}

bool TrainingRun::is_ours(const SavedState& state) const {
  return state.directory.starts_with(directory_.states() + "/");
}

void TrainingRun::settle_rejected() {
  set_aside(rejected_);
  for (const RejectedState& bad : rejected_) {
    journal_->event("state_rejected",
                    {{"state", bad.directory}, {"file", bad.file}, {"reason", bad.reason}});
  }
}

void TrainingRun::journal_warnings() {
  for (const std::string& warning : reporter_.take_warnings()) {
    journal_->event("warning", {{"step", progress_.step}, {"message", warning}});
  }
}

}  // namespace hearth
