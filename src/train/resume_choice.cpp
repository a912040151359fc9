#include "train/resume_choice.h"

#include <utility>

#include "base/file_ops.h"
#include "base/paths.h"
#include "base/setting.h"
#include "train/best_states.h"
#include "train/spelling.h"

namespace hearth {

ResumeChoice::ResumeChoice(const TrainConfig& config, const RunDirectory& directory,
                           RunIdentity identity, int64_t steps, RunReporter& reporter)
    : config_(config),
      directory_(directory),
      identity_(std::move(identity)),
      steps_(steps),
      reporter_(reporter) {}

std::optional<SavedState> ResumeChoice::find() {
  const auto reject = [this](const RejectedState& state) {
    reporter_.warn_of_event(state.message());
    rejected_.push_back(state);
  };
  search_.emplace(directory_.path(), reject);
  std::optional<SavedState> state = search_->next();
  if (state && config_.resume == ResumeMode::never) {
    throw usage_error(spelled(Setting::resume, "never") + ", but " + directory_.path() +
                      " holds saved state; give another " + spelled(Setting::out) +
                      " or remove it");
  }
  if (config_.resume != ResumeMode::from_directory) return state;
  const std::string named = spelled(Setting::resume, quoted(config_.resume_from));
  if (state) {
    reporter_.warn(named + " is not used: " + directory_.path() + " holds saved state of its own");
    return state;
  }
  const std::string from = without_trailing_slashes(config_.resume_from);
  if (step_of_state_directory(from)) {
    if (file_info(from).kind == FileKind::none) {
      throw usage_error(named +
                        ": no such state; 'hearth inspect' of its run directory lists the "
                        "states that are there");
    }
    search_.reset();
    return open_state(from);
  }
  search_.emplace(from, reject);
  state = search_->next();
  if (!state) throw usage_error(named + ": no saved state");
  return state;
}

void ResumeChoice::accept(const SavedState& state) {
  const RunIdentity saved = in_current_spelling(identity_in(state.extra), identity_);
  changes_ = compare(saved, identity_, config_.allow_change, state.directory + "/manifest.json");
  if (state.step > steps_) {
    throw usage_error(spelled(Setting::steps) + ": the run would end at step " +
                      std::to_string(steps_) + ", but " + state.directory + " is already at step " +
                      std::to_string(state.step) +
                      "; give more steps, or start a new run in another " + spelled(Setting::out));
  }
}

void ResumeChoice::require_own_result() {
  const bool of_a_run = file_info(directory_.journal()).kind != FileKind::none ||
                        file_info(directory_.metrics()).kind != FileKind::none;
  const std::string result = directory_.result();
  if (!of_a_run) {
    throw usage_error(spelled(Setting::out, quoted(directory_.path())) + ": holds a directory " +
                      quoted(result.substr(result.rfind('/') + 1)) +
                      " that no run left there; choose another one");
  }
  // Without a saved state the journal alone tells which run has ended here.
  const std::optional<Json> run = read_journaled_run(directory_.journal()).identity;
  if (!run) return;
  const RunIdentity ended = in_current_spelling(identity_in(*run), identity_);
  compare(ended, identity_, config_.allow_change, directory_.journal());
}

std::optional<SavedState> ResumeChoice::choose() {
  std::optional<SavedState> state = find();
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

bool ResumeChoice::has_ended(const std::optional<SavedState>& state) const {
  if (file_info(directory_.result()).kind != FileKind::directory) return false;
  if (state && (state->step >= steps_ || ends_early(*state))) return true;
  if (!rejected_.empty()) return false;
  const JournaledRun run = read_journaled_run(directory_.journal());
  return run.end == steps_ || (run.end && ends_early(run.early_stop.value_or(0)));
}

bool ResumeChoice::ends_early(int64_t without_best) const {
  return config_.early_stopping > 0 && without_best >= config_.early_stopping;
}

bool ResumeChoice::ends_early(const SavedState& state) const {
  if (!is_ours(state)) return false;
  BestStates best;
  best.restore(state.extra.find("best"), state.directory + "/manifest.json");
  return ends_early(best.without_best());
}

SavedState ResumeChoice::load(StateRegistry& registry, SavedState state, OtherReaders* others) {
  while (true) {
    try {
      load_state(registry, state, others);
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

bool ResumeChoice::is_ours(const SavedState& state) const {
  return state.directory.starts_with(directory_.states() + "/");
}

void ResumeChoice::set_rejected_aside(const SavedState* resumed, Journal& journal) {
  if (resumed != nullptr && !is_ours(*resumed)) return;
  set_aside(rejected_);
  for (const RejectedState& bad : rejected_) {
    journal.event("state_rejected",
                  {{"state", bad.directory}, {"file", bad.file}, {"reason", bad.reason}});
  }
}

}  // namespace hearth
