#include "train/known_policy.h"

#include "budget/policy_choice.h"
#include "train/state_to_resume.h"

namespace hearth {

std::string saved_policy(const TrainConfig& config) {
  const std::optional<SavedState> state = state_to_resume(config);
  if (!state) return {};
  const Json* const name = state->extra.find("auto_policy");
  return name != nullptr && name->is_string() ? name->as_string() : kStatic;
}

}  // namespace hearth
