#include "train/state_to_resume.h"

#include "base/error.h"
#include "base/file_ops.h"
#include "state/state_search.h"

namespace hearth {

static std::optional<SavedState> newest_state(const TrainConfig& config) {
  const auto newest_in = [](const std::string& directory) {
    return StateSearch(directory, [](const RejectedState&) {}).next();
  };
  if (!config.out.empty()) {
    if (auto state = newest_in(config.out)) return state;
  }
  if (config.resume != ResumeMode::from_directory) return std::nullopt;
  const std::string& from = config.resume_from;
  if (!step_of_state_directory(from)) return newest_in(from);
  if (file_info(from).kind == FileKind::none) return std::nullopt;  // refused where it is opened
  return open_state(from);
}

std::optional<SavedState> state_to_resume(const TrainConfig& config) {
  try {
    return newest_state(config);
  } catch (const Error& error) {
    if (error.code() != ExitCode::storage) throw;
    return std::nullopt;
  }
}

}  // namespace hearth
