#include "setup/template_date.h"

#include <ctime>
#include <optional>

#include "state/run_identity.h"
#include "state/state_search.h"

namespace hearth {
namespace {

constexpr const char* kOption = "template-date";

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[16] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

// The state that a resume starts from. The resume itself reports what is wrong with it.
std::optional<SavedState> state_to_resume(const TrainConfig& config) {
  try {
    auto state = StateSearch(config.out, [](const RejectedState&) {}).next();
    if (state || config.resume != ResumeMode::from_directory) return state;
    const std::string& from = config.resume_from;
    if (step_of_state_directory(from)) return open_state(from);
    return StateSearch(from, [](const RejectedState&) {}).next();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void fix_template_date(TrainConfig& config) {
  if (!config.template_date.empty()) return;
  std::string value = Json(today()).dump();
  if (const auto state = state_to_resume(config)) {
    const auto saved = identity_in(state->extra).option(kOption);
    if (!saved) return;
    value = *saved;
  }
  try {
    const Json date = parse_json(value, kOption);
    if (!date.is_string()) return;
    config.template_date = date.as_string();
  } catch (const Error&) {  // the comparison of options reports it
    return;
  }
  for (TrainConfig::Recorded& option : config.recorded) {
    if (option.name == kOption) option.value = value;
  }
}

}  // namespace hearth
