// Finds the newest intact state in a run directory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "state/saved_state.h"

namespace hearth {

/// The newest state of a run directory that passes every check. Calls `rejected` for each newer
/// state that fails. nullopt if there was never a state. Storage error if all states fail, or if
/// one has a newer format version. Does not change the disk.
std::optional<SavedState> find_newest_state(
    const std::string& run_dir, const std::function<void(const RejectedState&)>& rejected);

/// Walks the states of a run directory from the newest on, for a reader that checks the content
/// while loading. So a resume reads a state once.
class StateSearch {
 public:
  StateSearch(const std::string& run_dir, std::function<void(const RejectedState&)> rejected);

  /// Opens the next older state whose manifest can be read, beginning with the newest. nullopt if
  /// there was never a state. Storage error if all states were skipped.
  std::optional<SavedState> next();
  /// Reports that a state from `next` is damaged.
  void reject(const SavedState& state, const DamagedState& damage) const;

 private:
  std::string root_;
  std::function<void(const RejectedState&)> rejected_;
  std::vector<int64_t> steps_;  // not yet tried, ascending
  bool had_states_ = false;
};

}  // namespace hearth
