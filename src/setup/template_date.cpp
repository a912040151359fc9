#include "setup/template_date.h"

#include <ctime>
#include <optional>

#include "state/saved_state.h"

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

// The state that a resume starts with; what is wrong with it, the resume itself tells.
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

// As YAML on one line, as all recorded values are; nullopt where the state has no such option.
std::optional<std::string> recorded_in(const SavedState& state) {
  const Json* options = state.extra.find("options");
  const Json* date = options != nullptr ? options->find(kOption) : nullptr;
  if (date == nullptr || !date->is_string()) return std::nullopt;
  return date->as_string();
}

}  // namespace

void fix_template_date(TrainConfig& config) {
  if (!config.template_date.empty()) return;
  std::string value = Json(today()).dump();
  if (const auto state = state_to_resume(config)) {
    const auto saved = recorded_in(*state);
    if (!saved) return;
    value = *saved;
  }
  try {
    const Json date = parse_json(value, kOption);
    if (!date.is_string()) return;
    config.template_date = date.as_string();
  } catch (const Error&) {  // not ours: the comparison of options tells
    return;
  }
  for (TrainConfig::Recorded& option : config.recorded) {
    if (option.name == kOption) option.value = value;
  }
}

}  // namespace hearth
