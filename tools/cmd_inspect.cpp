// hearth inspect: what a checkpoint, a saved state or a run directory holds; digests of the content.
#include "base/file_ops.h"
#include "model/checkpoint.h"
#include "model/inspect.h"
#include "tools/commands.h"
#include "tools/directory_kind.h"
#include "tools/output.h"
#include "train/saved_state.h"

namespace hearth {
namespace {

/// What is shown, for people and as JSON.
struct Shown {
  std::string text;
  Json json;
};

Shown view_checkpoint(const std::string& directory, bool follow_links, bool digest) {
  const Checkpoint checkpoint(directory, follow_links);
  if (digest) {
    const ContentDigest content = digest_checkpoint(checkpoint);
    return {digest_text(content), digest_json(content)};
  }
  const Inspection inspection = inspect_checkpoint(checkpoint);
  return {inspection_text(inspection), inspection_json(inspection)};
}

Shown view_state(const std::string& directory, bool digest) {
  const SavedState state = verify_state(directory);
  Shown view;
  JsonObject items;
  if (digest) {
    for (const StateDigest::Item& item : state.digest.tensors) {
      items.emplace_back(item.name, item.digest.hex());
      view.text += item.digest.hex() + "  " + item.name + "\n";
    }
    view.text += state.digest.root.hex() + "  (all)\n";
    view.json["digest"] = Json(std::move(items));
    view.json["root"] = state.digest.root.hex();
    return view;
  }
  view.text = "saved state of step " + std::to_string(state.step) + ", whole\n";
  for (const StateDigest::Item& item : state.digest.components) {
    items.emplace_back(item.name, item.digest.hex());
    view.text += "  " + item.digest.hex() + "  " + item.name + "\n";
  }
  view.json["kind"] = "saved_state";
  view.json["step"] = state.step;
  view.json["components"] = Json(std::move(items));
  view.json["root"] = state.digest.root.hex();
  return view;
}

Shown view_run(const std::string& directory, bool digest) {
  if (digest) {
    throw usage_error("--digest: a run directory holds several things; name " + directory +
                      "/model or one of " + directory + "/state/step-*");
  }
  Shown view;
  JsonArray states, rejected;
  view.text = "run directory\n";
  const auto newest = find_newest_state(directory, [&](const RejectedState& bad) {
    view.text += "  rejected state " + bad.directory + ": " + bad.reason + "\n";
    rejected.emplace_back(bad.directory);
  });
  const std::string folder = directory + "/state";
  if (file_info(folder).kind == FileKind::directory) {
    for (const std::string& name : list_directory(folder)) {
      if (!step_of_state_directory(name)) continue;
      states.emplace_back(name);
      view.text += "  state " + name + "\n";
    }
  }
  const bool finished = file_info(directory + "/model").kind == FileKind::directory;
  if (newest) view.text += "  newest whole state: step " + std::to_string(newest->step) + "\n";
  view.text += finished ? "  result in model/\n" : "  no result yet\n";
  view.json["kind"] = "run";
  view.json["states"] = Json(std::move(states));
  view.json["rejected"] = Json(std::move(rejected));
  view.json["newest_step"] = newest ? Json(newest->step) : Json(nullptr);
  view.json["result"] = finished ? Json("model") : Json(nullptr);
  return view;
}

}  // namespace

ExitCode run_inspect(const Options& options) {
  Shown view;
  switch (directory_kind(options.operand)) {
    case DirectoryKind::checkpoint:
      view = view_checkpoint(options.operand, options.follow_links, options.digest);
      break;
    case DirectoryKind::saved_state: view = view_state(options.operand, options.digest); break;
    case DirectoryKind::run: view = view_run(options.operand, options.digest); break;
  }
  if (options.json) {
    print_json(view.json);
  } else {
    print(view.text);
  }
  return ExitCode::done;
}

}  // namespace hearth
