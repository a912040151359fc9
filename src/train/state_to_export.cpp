#include "train/state_to_export.h"

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/setting.h"
#include "state/run_identity.h"
#include "state/state_search.h"

namespace hearth {

SavedState find_state_to_export(const std::string& path, Reporter& reporter) {
  if (file_info(path).kind != FileKind::directory) {
    throw input_error(path + ": expected a directory of saved state or a run directory");
  }
  const bool is_state =
      step_of_state_directory(path) || file_info(path + "/manifest.json").kind != FileKind::none;
  if (is_state) return verify_state(path);
  const auto state =
      find_newest_state(path, [&](const RejectedState& bad) { reporter.warn(bad.message()); });
  if (!state) throw input_error(path + ": no saved state in it");
  return *state;
}

std::string model_of_state(const SavedState& state) {
  if (const auto text = identity_in(state.extra).option("model")) {
    const Json name = parse_json(*text, state.directory + "/manifest.json");
    if (name.is_string()) return name.as_string();
  }
  throw input_error("{}: does not name the model that was trained; give {}", state.directory,
                    spelled(Setting::model));
}

std::vector<TemplateSource> templates_of_state(const SavedState& state, Reporter& reporter) {
  const RunIdentity run = identity_in(state.extra);
  if (run.templates.value) {
    return read_templates(*run.templates.value, state.directory + "/manifest.json");
  }
  const std::string option = run.option("chat-template").value_or("null");
  if (option != "null") {
    reporter.warn(state.directory + ": an older version saved it without the text of " +
                  spelled(Setting::chat_template, option) +
                  "; the result carries the template of its base");
  }
  return {};
}

}  // namespace hearth
