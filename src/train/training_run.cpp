// Before the first step: what may be resumed, memory, weights, logs.
#include "train/training_run.h"

#include <algorithm>

#include "base/paths.h"
#include "base/version.h"
#include "setup/row_requests.h"
#include "train/lr_schedule.h"
#include "train/run_disk.h"
#include "train/spelling.h"

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
      gradients_(setup_.table, setup_.opened->spec),
      templates_(carried_templates(template_options(config))),
      result_changes_(template_changes(templates_, config.model, config.follow_links)) {
  require_run_fits(run_, config);
}

std::optional<SavedState> TrainingRun::choose_state() {
  identity_ = identity_of_run(
      config_, setup_, data_.rows.digests(),
      data_.eval_rows ? data_.eval_rows->digests() : std::vector<std::pair<std::string, Digest>>{});
  if (run_.experts) identity_.experts = run_.experts->record;
  if (!templates_.empty()) identity_.templates = templates_json(templates_);
  if (config_.val_size > 0) identity_.val_rows = data_.rows.split().hex();
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
  const RunIdentity saved = in_current_spelling(identity_in(state.extra), identity_);
  changes_ = compare(saved, identity_, config_.allow_change, state.directory + "/manifest.json");
  if (state.step > steps_) {
    throw usage_error("--steps: the run would end at step " + std::to_string(steps_) + ", but " +
                      state.directory + " is already at step " + std::to_string(state.step) +
                      "; give more steps, or start a new run in another --out");
  }
}

bool TrainingRun::has_ended(const std::optional<SavedState>& state) const {
  if (file_info(directory_.result()).kind != FileKind::directory) return false;
  if (state && state->step >= steps_) return true;
  return rejected_.empty() && read_journaled_run(directory_.journal()).end == steps_;
}

std::optional<SavedState> TrainingRun::check(std::optional<SavedState> state) {
  if (state) {
    accept(*state);
  } else if (file_info(directory_.result()).kind == FileKind::directory) {
    require_own_result();
  }
  if (!has_ended(state)) return state;  // a resume notices damage as it reads
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
  return state;
}

ExitCode TrainingRun::report_end() {
  directory_.clean();
  if (!rejected_.empty()) {
    journal_ = std::make_unique<Journal>(directory_.journal());
    settle_rejected();
  }
  reporter_.note("already finished: " + directory_.result());
  const auto alarm = read_journaled_run(directory_.journal()).alarm;
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
  const std::optional<Json> run = read_journaled_run(directory_.journal()).identity;
  if (!run) return;
  const RunIdentity ended = in_current_spelling(identity_in(*run), identity_);
  compare(ended, identity_, config_.allow_change, directory_.journal());
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
    state = load(*state);  // trained tensors; frozen ones stay those of the checkpoint
    gradients_.restore(state->extra.find("gradients"), state->directory + "/manifest.json");
    if (is_ours(*state)) saved_step_ = progress_.step;
    if (!is_ours(*state)) rejected_.clear();  // of another run: not ours to set aside
  }
  if (state && (!is_ours(*state) ||
                (data_.eval && read_journaled_run(directory_.journal()).loss_at(progress_.step)))) {
    evaluated_step_ = progress_.step;
  }
  frozen_at_start_ = frozen_content(session_->table(), session_->pool());
  identity_.determinism = determinism_record(state ? &*state : nullptr, changes_);
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
                           {"determinism", *identity_.determinism.value},
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
