// Finding a state in a run directory: the newest one that is whole wins.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "state/saved_state.h"

namespace hearth {

/// The newest state of a run directory that passes every check. Calls `rejected` for each newer one
/// that does not. nullopt if there was never a state. Storage error if there are states but none is
/// whole, or if one has a newer format version. Changes nothing on disk.
std::optional<SavedState> find_newest_state(
    const std::string& run_dir, const std::function<void(const RejectedState&)>& rejected);

/// Walks the states of a run directory from the newest on, for a reader that checks contents as it
/// loads them: so a resume reads a state once.
class StateSearch {
 public:
  StateSearch(const std::string& run_dir, std::function<void(const RejectedState&)> rejected);

  /// Opens the next older state whose manifest can be read, beginning with the newest. nullopt if
  /// there was never a state. Storage error if all states were passed over.
  std::optional<SavedState> next();
  /// Reports that a state which `next` returned is damaged.
  void reject(const SavedState& state, const DamagedState& damage) const;

 private:
  std::string root_;
  std::function<void(const RejectedState&)> rejected_;
  std::vector<int64_t> steps_;  // still to be tried, ascending
  bool had_states_ = false;
};

}  // namespace hearth
