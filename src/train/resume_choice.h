// Which saved state a run goes on from, if any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/journal.h"
#include "record/run_directory.h"
#include "record/run_reporter.h"
#include "state/state_search.h"
#include "train/resume.h"

namespace hearth {

/// Finds the state, refuses one of another run, and passes over damaged ones. Changes nothing on
/// disk before `set_rejected_aside`.
class ResumeChoice {
 public:
  /// `steps` of the whole run. All references must outlive the choice. Warns of states that it passes
  /// over.
  ResumeChoice(const TrainConfig& config, const RunDirectory& directory, RunIdentity identity,
               int64_t steps, RunReporter& reporter);

  /// The state to go on from, with only its manifest read; nullopt: from step 1. Usage or input error
  /// if the state or the result in the directory is of another run. If the run has ended, reads the
  /// whole state, because nothing else would, and falls back to an older one if it is damaged.
  std::optional<SavedState> choose();
  /// Whether nothing is left to do: the result is there, and the newest state is of the last step,
  /// or of an earlier one if the run ended without saving its last (--final-state off).
  bool has_ended(const std::optional<SavedState>& state) const;
  /// Reads the content of a state, or of the next older one that is whole. Returns the state read.
  SavedState load(StateRegistry& registry, SavedState state);
  /// Whether the state lies in this run directory, and not in one that --resume names.
  bool is_ours(const SavedState& state) const;

  bool has_rejected() const { return !rejected_.empty(); }
  /// Renames the rejected states of this directory, and notes them in the journal. `resumed`: the
  /// state that the run goes on from; if it is not ours, the rejected ones are not, either.
  void set_rejected_aside(const SavedState* resumed, Journal& journal);

  const RunIdentity& identity() const { return identity_; }
  /// Changes of options since the state that the run goes on from.
  const std::vector<std::string>& changes() const { return changes_; }

 private:
  std::optional<SavedState> find();
  /// Usage or input error unless a run with these options may go on from the state.
  void accept(const SavedState& state);
  /// The same for a result without a saved state, as far as the journal tells whose it is. Usage
  /// error if no run left it.
  void require_own_result();

  const TrainConfig& config_;
  const RunDirectory& directory_;
  const RunIdentity identity_;
  const int64_t steps_;
  RunReporter& reporter_;
  std::optional<StateSearch> search_;  // none if --resume names one state
  std::vector<RejectedState> rejected_;
  std::vector<std::string> changes_;
};

}  // namespace hearth
