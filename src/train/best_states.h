// Which saved states are the best, and how long ago the last new best was.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace hearth {

/// A state, named by its step, and the evaluation loss of its weights.
struct ScoredState {
  int64_t step = 0;
  double loss = 0;
};

/// The N best states of a run: those with the lowest evaluation losses; of equal losses the earliest.
/// Only states that are on disk replace others, so a save that fails loses no best state.
///
/// The record is in the manifest of every saved state (member "best"). A resumed run ranks, keeps and
/// ends as if it had not been interrupted.
class BestStates {
 public:
  /// `most`: how many best states to keep; 0: none.
  explicit BestStates(int64_t most = 0) : most_(most) {}

  /// Counts the evaluation after a step. A loss that is not finite is never a best.
  void add(int64_t step, double loss);
  /// Whether the state of the step is among the N best and not on disk yet, so it must be saved.
  bool wants(int64_t step) const;
  /// The outcome of the save of a step that `wants` asked for. Ignores other steps.
  void saved(int64_t step);
  void not_saved(int64_t step);
  /// Forgets states that are not on disk.
  void keep_only(const std::vector<int64_t>& steps);

  /// The steps of the N best states, as they are once the state that `wants` asks for is saved.
  std::vector<int64_t> steps() const;
  /// The best state on disk.
  std::optional<ScoredState> best() const;

  /// Step of the last counted evaluation; 0: none.
  int64_t last_evaluated() const { return last_evaluated_; }
  /// Evaluations in a row without a new best, up to the last one.
  int64_t without_best() const { return without_best_; }
  /// The lowest loss so far and its step, whether or not its state is kept.
  const std::optional<ScoredState>& lowest() const { return lowest_; }

  /// For the manifest of the state that is about to be saved.
  Json to_json() const;
  /// Restores the record of a saved state; nullptr: an older version's, without one. Storage error
  /// that names `source` if it is malformed.
  void restore(const Json* saved, const std::string& source);

 private:
  std::vector<ScoredState> ranked() const;

  int64_t most_;
  std::vector<ScoredState> states_;   // on disk, the best first
  std::vector<ScoredState> waiting_;  // to be saved, or being saved
  std::optional<ScoredState> lowest_;
  int64_t last_evaluated_ = 0;
  int64_t without_best_ = 0;
};

}  // namespace hearth
