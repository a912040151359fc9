// Before the first step: what is planned, what is resumed, memory, weights, logs.
#include "train/training_run.h"

#include "base/system.h"
#include "base/version.h"
#include "budget/placement_report.h"
#include "budget/policy_choice.h"
#include "setup/row_requests.h"
#include "train/banner.h"
#include "train/decided_past.h"
#include "train/known_tables.h"
#include "train/recorded_decisions.h"
#include "train/run_disk.h"

namespace hearth {

namespace {

RunIdentity full_identity(const TrainConfig& config, const PlannedRun& run,
                          const std::vector<TemplateSource>& templates) {
  using Digests = std::vector<std::pair<std::string, Digest>>;
  const TrainingData& data = *run.data;
  RunIdentity identity = identity_of_run(config, run.model, data.rows.digests(),
                                         data.eval_rows ? data.eval_rows->digests() : Digests{});
  if (run.experts) identity.experts = run.experts->record;
  if (!templates.empty()) identity.templates = templates_json(templates);
  if (config.val_size > 0) identity.val_rows = data.rows.split().hex();
  return identity;
}

}  // namespace

TrainingRun::TrainingRun(const TrainConfig& given, RunReporter& reporter, RankTeam* launched)
    : reporter_(reporter),
      directory_(given.out, given.method == Method::lora ? "adapter" : "model"),
      run_(given, open_model(given), reporter, Planning::run),
      config_(run_.config),
      model_(run_.model),
      data_(*run_.data),
      course_(lr_course(config_, *run_.steps)),
      templates_(carried_templates(template_options(config_))),
      result_changes_(template_changes(templates_, config_.model, config_.follow_links)),
      launched_(launched),
      routing_(model_.opened->spec),
      gradients_(model_.table, model_.opened->spec),
      best_(config_.best_states()) {
  require_run_fits(run_, config_);
  identity_ = full_identity(config_, run_, templates_);
  resume_.emplace(config_, directory_, identity_, *run_.steps, reporter);
}

ExitCode TrainingRun::report_end() {
  directory_.clean();
  if (resume_->has_rejected()) {
    Journal journal(directory_.journal());
    resume_->set_rejected_aside(nullptr, journal);
  }
  reporter_.note("already finished: " + directory_.result());
  const auto alarm = read_journaled_run(directory_.journal()).alarm;
  if (alarm) reporter_.warn_of_event("verdict: alarm: " + *alarm);
  return code_of_end(!alarm);
}

SavedState TrainingRun::restore(const SavedState& chosen) {
  const SavedState state = resume_->load(registry_, chosen, crew_ ? &crew_->begin_load() : nullptr);
  gradients_.restore(state.extra.find("gradients"), state.directory + "/manifest.json");
  losses_.restore(state.extra.find("losses"), state.directory + "/manifest.json");
  if (const Json* const past = state.extra.find("decisions")) {
    session_->restore_decided_past(decided_past(*past, model_.opened->devices.names(),
                                                model_.opened->spec,
                                                state.directory + "/manifest.json"));
  }
  std::optional<double> loss;
  if (data_.eval) loss = read_journaled_run(directory_.journal()).loss_at(progress_.step);
  if (loss || !resume_->is_ours(state)) evaluated_step_ = progress_.step;
  restore_best(state, loss);
  return state;
}

void TrainingRun::restore_best(const SavedState& state, std::optional<double> loss) {
  if (!resume_->is_ours(state)) return;  // its best states are in another directory
  best_.restore(state.extra.find("best"), state.directory + "/manifest.json");
  std::vector<int64_t> there;
  for (const std::string& name : list_directory(directory_.states())) {
    if (const auto step = step_of_state_directory(name)) there.push_back(*step);
  }
  best_.keep_only(there);
  // A signal may have cut off the evaluation of this state. Then the next start evaluated it.
  if (loss && best_.last_evaluated() < state.step) best_.add(state.step, *loss);
  best_.saved(state.step);
}

void TrainingRun::open(const std::optional<SavedState>& chosen) {
  require_disk(model_, config_, *run_.steps);
  require_folder_of_trace(config_);
  if (run_.repeated) {
    require_recorded(*run_.repeated, model_, chosen ? chosen->step + 1 : 1, *run_.steps);
  }
  reporter_.show_warnings();
  log_lines(model_.opened->said);
  if (launched_ != nullptr) {
    crew_ = std::make_unique<RankCrew>(run_, *launched_, identity_);
  } else if (model_.plan.shards.ranks > 1) {
    crew_ = std::make_unique<RankCrew>(run_);
  }
  release_freed_memory();  // what follows is planned from here
  session_ = std::make_unique<Session>(model_, crew_ ? &crew_->team() : nullptr, run_.repeated);
  crew_ ? crew_->register_state(*session_, registry_) : session_->register_state(registry_);
  register_progress(registry_, progress_, data_.sampler);
  routing_.register_state(registry_);
  session_->read_weights();
  std::optional<SavedState> state;
  if (chosen) state = restore(*chosen);  // trained tensors; frozen ones stay the checkpoint's
  const SavedState* from = state ? &*state : nullptr;
  const bool ours = state && resume_->is_ours(*state);
  if (crew_ && state) readers_ = crew_->end_load(*session_);
  if (state) release_freed_memory();  // of lists of the saved state
  frozen_at_start_ = frozen_content(session_->table(), session_->pool());
  identity_.determinism = determinism_record(from, resume_->changes());
  directory_.clean();
  directory_.write_config(config_.recorded);
  directory_.write_plan(plan_json(model_, run_.times, model_.plan.places));
  open_logs(from);
  if (ours) keep_states(directory_.path(), {static_cast<int>(config_.keep), best_.steps()});
  describe(run_, config_, course_.warmup, progress_.step == 0, reporter_);
  for (const IdentityChange& change : resume_->changes()) {
    const std::string text = "changed since the saved state: " + change.text;
    if (change.keeps_bits) {
      reporter_.note(text + "; the bits stay the same");
    } else {
      reporter_.warn_of_event(
          text + "; the result may differ in its bits from that of an uninterrupted run");
    }
  }
  if (progress_.step > 0) {
    reporter_.note("resumed after step " + std::to_string(progress_.step) + " of " +
                   std::to_string(*run_.steps));
  }
  logs_->note_warnings(progress_.step);
  const auto extra = [this] {
    Json json = to_json(identity_);
    json["gradients"] = gradients_.to_json();
    json["losses"] = losses_.to_json();
    json["best"] = best_.to_json();
    const std::vector<DecidedPast> past = session_->decided_past();
    if (!past.empty()) json["decisions"] = to_json(past, model_.opened->devices.names());
    json["costs"] = saved_tables(model_.tables, *model_.opened);
    if (model_.policy) json["auto_policy"] = model_.policy->name;
    if (run_.sample) json["sample"] = sample_record(*run_.sample);
    return json;
  };
  saves_ = std::make_unique<RunSaves>(
      config_, directory_,
      RunSaves::Source{registry_, progress_, data_.sampler, extra, best_, &session_->pool(),
                       [this] {
                         drain();
                         follow_popularity();
                       },
                       crew_.get()},
      *logs_, reporter_, ours ? progress_.step : -1);
  shrink_devices();
  step_time_.restart();
}

void TrainingRun::open_logs(const SavedState* state) {
  logs_ = std::make_unique<RunLogs>(directory_, reporter_);
  Journal& journal = logs_->journal;
  resume_->set_rejected_aside(state, journal);
  if (state != nullptr) {
    JsonArray list;
    for (const IdentityChange& change : resume_->changes()) list.push_back(change.text);
    JsonObject event{
        {"step", progress_.step}, {"state", state->directory}, {"changes", std::move(list)}};
    if (!readers_.empty()) {
      event.emplace_back("readers", JsonArray(readers_.begin(), readers_.end()));
    }
    journal.event("resume", std::move(event));
  } else {
    journal.event("start", {{"steps", *run_.steps}, {"version", build_info().version}});
  }
  if (run_.experts && !(state != nullptr && resume_->is_ours(*state))) {
    journal.event("experts", run_.experts->record.as_object());
  }
  for (JsonObject& event : placement_events(model_, progress_.step)) {
    journal.event("placement", std::move(event));
  }
  if (JsonArray held = held_experts_json(model_); !held.empty()) {
    journal.event("held_experts", {{"step", progress_.step}, {"devices", std::move(held)}});
  }
  if (model_.policy) {
    JsonObject choice = policy_json(model_).as_object();
    choice.insert(choice.begin(), {"step", progress_.step});
    journal.event("policy", std::move(choice));
  }
  journal.event("costs", {{"step", progress_.step}, {"tables", tables_json(model_)}});
  if (const std::string reason = stage_order_reason(model_); !reason.empty()) {
    journal.event("stage_order", {{"step", progress_.step}, {"reason", reason}});
  }
  const Plan& plan = model_.plan;
  if (plan.shards.ranks > 1) {
    journal.event("messages", {{"step", progress_.step}, {"direct", plan.shards.direct}});
  }
  journal.event("plan", {{"parallel", std::string(model_.opened->devices.planner->name())},
                         {"devices", devices_json(model_)},
                         {"workers", int64_t{model_.opened->workers}},
                         {"compute_dtype", name_of(model_.settings.compute)},
                         {"group", plan.train->group},
                         {"recompute", plan.train->recompute ? "blocks" : "none"},
                         {"layer_inputs", plan.train->inputs_on_host ? "host" : "in_place"},
                         {"determinism", *identity_.determinism.value},
                         {"family", model_.opened->spec.family},
                         {"parameters", all_parameters(model_.table)},
                         {"trained_parameters", trained_parameters(model_.table)}});
}

}  // namespace hearth
