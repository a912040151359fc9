// Chooses the saved state that a run resumes, if any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/journal.h"
#include "record/run_directory.h"
#include "record/run_reporter.h"
#include "state/state_load.h"
#include "state/state_search.h"
#include "train/resume.h"

namespace hearth {

/// Finds the state, refuses a state of another run, and skips damaged states. Changes nothing on
/// disk before `set_rejected_aside`.
class ResumeChoice {
 public:
  /// `steps`: of the whole run. All references must outlive the choice. Warns about skipped states.
  ResumeChoice(const TrainConfig& config, const RunDirectory& directory, RunIdentity identity,
               int64_t steps, RunReporter& reporter);

  /// The state to resume, with only its manifest read; nullopt: start at step 1. Usage or input
  /// error if the state or the result in the directory belongs to another run. If the run has
  /// ended, verifies the whole state, because no resume will, and falls back to an older one if it
  /// is damaged.
  std::optional<SavedState> choose();
  /// Whether nothing is left to do. The result must exist, and the state must be of the last step.
  /// Without such a state (--final-state off), the journal must say that the run ended at that
  /// step.
  bool has_ended(const std::optional<SavedState>& state) const;
  /// Loads a state, or the next older intact one if it is damaged. Returns the loaded state. `others`:
  /// as load_state.
  SavedState load(StateRegistry& registry, SavedState state, OtherReaders* others = nullptr);
  /// Whether the state is in this run directory, not in another that --resume names.
  bool is_ours(const SavedState& state) const;

  bool has_rejected() const { return !rejected_.empty(); }
  /// Renames the rejected states and writes them to the journal. `resumed`: the state that the run
  /// resumes, or null. Does nothing if that state is in another directory; so are the rejected
  /// ones.
  void set_rejected_aside(const SavedState* resumed, Journal& journal);

  const RunIdentity& identity() const { return identity_; }
  /// Changes of options since the resumed state.
  const std::vector<IdentityChange>& changes() const { return changes_; }

 private:
  std::optional<SavedState> find();
  /// Usage or input error unless a run with these options may resume the state.
  void accept(const SavedState& state);
  /// The same for a result without a saved state, if the journal identifies its run. Usage error if
  /// no run left the result.
  void require_own_result();

  /// Whether --early-stopping ends a run after these evaluations in a row without a new best, or
  /// with this state.
  bool ends_early(int64_t without_best) const;
  bool ends_early(const SavedState& state) const;

  const TrainConfig& config_;
  const RunDirectory& directory_;
  const RunIdentity identity_;
  const int64_t steps_;
  RunReporter& reporter_;
  std::optional<StateSearch> search_;  // none if --resume names one state
  std::vector<RejectedState> rejected_;
  std::vector<IdentityChange> changes_;
};

}  // namespace hearth
