#include "state/state_directory.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "base/paths.h"

namespace hearth {
namespace {

std::vector<int64_t> steps_newest_first(const std::vector<std::string>& names,
                                        std::string_view prefix) {
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    if (const auto step = step_of_state_directory(name.substr(prefix.size()))) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

}  // namespace

std::string state_directory_name(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return name;
}

std::optional<int64_t> step_of_state_directory(const std::string& path) {
  const std::string trimmed = without_trailing_slashes(path);
  const std::string name = trimmed.substr(trimmed.rfind('/') + 1);
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix) || name.size() > prefix.size() + 18) return std::nullopt;
  int64_t step = 0;
  for (const char c : name.substr(prefix.size())) {
    if (c < '0' || c > '9') return std::nullopt;
    step = step * 10 + (c - '0');
  }
  return state_directory_name(step) == name ? std::optional(step) : std::nullopt;
}

void discard_state(const std::string& directory, const std::string& hidden) {
  try {
    if (directory != hidden) {
      remove_tree(hidden);
      rename_no_replace(directory, hidden);
      // Durable first: a power loss must not leave a state's name with half of its files.
      sync_directory(hidden.substr(0, hidden.rfind('/')));
    }
    remove_tree(hidden);
  } catch (const Error& error) {
    log_warning(error.what());
  }
}

void remove_old_states(const std::string& folder, const KeptStates& kept) try {
  const std::vector<std::string> names = list_directory(folder);
  const std::vector<int64_t> steps = steps_newest_first(names, "");
  const auto remove = [&](const std::string& name, int64_t step) {
    discard_state(folder + "/" + name, folder + "/.trash-" + state_directory_name(step));
  };
  for (size_t i = static_cast<size_t>(kept.newest); i < steps.size(); ++i) {
    if (std::find(kept.steps.begin(), kept.steps.end(), steps[i]) != kept.steps.end()) continue;
    remove(state_directory_name(steps[i]), steps[i]);
  }
  for (const int64_t bad : steps_newest_first(names, ".bad-")) {
    const auto newer =
        std::count_if(steps.begin(), steps.end(), [&](int64_t s) { return s >= bad; });
    if (newer >= 2) remove(".bad-" + state_directory_name(bad), bad);
  }
} catch (const Error& error) {
  log_warning(error.what());
}

void keep_states(const std::string& run_dir, const KeptStates& kept) {
  sync_directory(state_folder(run_dir));  // the newest may have been renamed and no more
  remove_old_states(state_folder(run_dir), kept);
}

void set_aside(const std::vector<RejectedState>& rejected) {
  for (const RejectedState& state : rejected) {
    const size_t slash = state.directory.find_last_of('/') + 1;
    const std::string bad =
        state.directory.substr(0, slash) + ".bad-" + state.directory.substr(slash);
    remove_tree(bad);
    rename_no_replace(state.directory, bad);
  }
}

void remove_leftovers(const std::string& run_dir) {
  for (const std::string& directory : {run_dir, state_folder(run_dir)}) {
    if (file_info(directory).kind != FileKind::directory) continue;
    std::vector<std::string> left = list_directory(directory);
    std::erase_if(left, [](const std::string& name) {
      return !name.starts_with(".tmp-") && !name.starts_with(".trash-");
    });
    if (!left.empty()) sync_directory(directory);  // these names, before what they hold goes
    for (const std::string& name : left) remove_tree(directory + "/" + name);
  }
}

}  // namespace hearth
