// The states of a run directory: their names, and which ones stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth {

/// "step-00000100".
std::string state_directory_name(int64_t step);
/// The step of a path whose last part is such a name; nullopt for any other path.
std::optional<int64_t> step_of_state_directory(const std::string& path);
/// The folder of a run's states.
inline std::string state_folder(const std::string& run_dir) { return run_dir + "/state"; }

/// A state that a search passed over, and why. `file` is the bad file in the directory; it is empty
/// if the directory itself is wrong.
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

/// Removes all but the `keep` newest states; the newest was checked. Cleans up after a process that
/// was killed between a save and its retention. What cannot be removed is a warning.
void keep_newest_states(const std::string& run_dir, int keep);

/// Removes the .tmp-* and .trash-* entries of a run directory and of its state folder: the leftovers
/// of a killed process. The caller holds the run's lock.
void remove_leftovers(const std::string& run_dir);

/// Renames a directory to `hidden` before it removes it, so that nobody takes half of it for a state.
/// What cannot be removed is a warning; the next start removes it.
void discard_state(const std::string& directory, const std::string& hidden);
/// Removes all but the newest `keep` states of the folder, and rejected states that two newer ones
/// have replaced. What cannot be removed is a warning.
void remove_old_states(const std::string& folder, int keep);

}  // namespace hearth
