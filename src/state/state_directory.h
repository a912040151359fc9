// The state directories of a run: their names and their removal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth {

/// "step-00000100".
std::string state_directory_name(int64_t step);
/// The step, if the path's last part is such a name; else nullopt.
std::optional<int64_t> step_of_state_directory(const std::string& path);
/// The folder of a run's states.
inline std::string state_folder(const std::string& run_dir) { return run_dir + "/state"; }

/// Where the state of a step is written before it is published.
inline std::string hidden_state_directory(const std::string& run_dir, int64_t step) {
  return state_folder(run_dir) + "/.tmp-" + state_directory_name(step);
}

/// A state that a search skipped, and why. `file` is the bad file in the directory; empty if the
/// directory itself is wrong.
struct RejectedState {
  std::string directory;
  std::string file;
  std::string reason;
  /// The warning about it.
  std::string message() const {
    return "saved state passed over: " + directory + (file.empty() ? "" : "/" + file) + ": " +
           reason;
  }
};

/// Renames rejected states to state/.bad-step-*, so that they do not block a new save of that step.
/// Call when a run continues from an older state. A save removes them once two newer states exist.
void set_aside(const std::vector<RejectedState>& rejected);

/// The states that stay: the newest ones, and those of certain steps.
struct KeptStates {
  int newest = 1;
  std::vector<int64_t> steps = {};
};

/// Removes all other states. The caller has checked the newest state. Cleans up after a process
/// that was killed before it removed old states. A failed removal is a warning.
void keep_states(const std::string& run_dir, const KeptStates& kept);

/// Removes the leftovers of a killed process: .tmp-* and .trash-* entries of the run directory and
/// its state folder. The caller holds the run's lock.
void remove_leftovers(const std::string& run_dir);

/// Renames a directory to `hidden` and then removes it, so that a half-removed directory is never
/// taken for a state. A failed removal is a warning; the next start removes the directory.
void discard_state(const std::string& directory, const std::string& hidden);
/// Removes all other states of the folder, and rejected states that two newer states have replaced.
/// A failed removal is a warning.
void remove_old_states(const std::string& folder, const KeptStates& kept);

}  // namespace hearth
