#include "state/state_search.h"

#include <algorithm>

#include "base/file_ops.h"
#include "base/setting.h"

namespace hearth {

StateSearch::StateSearch(const std::string& run_dir,
                         std::function<void(const RejectedState&)> rejected)
    : root_(run_dir + "/state"), rejected_(std::move(rejected)) {
  if (file_info(root_).kind == FileKind::none) return;
  for (const std::string& name : list_directory(root_)) {
    if (const auto step = step_of_state_directory(name)) steps_.push_back(*step);
    had_states_ = had_states_ || name.starts_with(".bad-");
  }
  had_states_ = had_states_ || !steps_.empty();
  std::sort(steps_.begin(), steps_.end());
}

std::optional<SavedState> StateSearch::next() {
  while (!steps_.empty()) {
    const std::string directory = root_ + "/" + state_directory_name(steps_.back());
    steps_.pop_back();
    try {
      return open_state(directory);
    } catch (const DamagedState& damage) {
      rejected_({directory, damage.file, damage.reason});
    }
  }
  if (!had_states_) return std::nullopt;
  throw storage_error(root_ +
                      ": holds saved state, but none of it is whole; nothing was changed. "
                      "Restore a state from a backup, or use another " +
                      spelled(Setting::out));
}

void StateSearch::reject(const SavedState& state, const DamagedState& damage) const {
  rejected_({state.directory, damage.file, damage.reason});
}

std::optional<SavedState> find_newest_state(
    const std::string& run_dir, const std::function<void(const RejectedState&)>& rejected) {
  StateSearch search(run_dir, rejected);
  while (const auto state = search.next()) {
    try {
      return verify_state(state->directory);
    } catch (const DamagedState& damage) {
      search.reject(*state, damage);
    }
  }
  return std::nullopt;
}

}  // namespace hearth
