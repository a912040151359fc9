// hearth inspect: what a checkpoint, an adapter, a saved state or a run directory holds; digests of the content.
#include "base/counted.h"
#include "base/error_format.h"
#include "base/file_ops.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/inspect.h"
#include "checkpoint/inspect_report.h"
#include "checkpoint/safetensors.h"
#include "commands/commands.h"
#include "commands/directory_kind.h"
#include "commands/output.h"
#include "peft/check.h"
#include "peft/inspect.h"
#include "setup/trained_model.h"
#include "state/state_search.h"

namespace hearth {
namespace {

/// What is shown, for people and as JSON.
struct Shown {
  std::string text;
  Json json;
};

Shown view_checkpoint(const Options& options) {
  const Checkpoint checkpoint(options.operand, options.follow_links);
  ParameterTable table = checkpoint.make_table();
  select_trainable(table, checkpoint.layout(), false, options.trainable, options.freeze);
  if (options.digest) {
    const ContentDigest content = digest_checkpoint(checkpoint);
    return {digest_text(content), digest_json(content)};
  }
  const Inspection inspection = inspect_checkpoint(checkpoint, table);
  return {inspection_text(inspection), inspection_json(inspection)};
}

Shown view_adapter(const Options& options) {
  if (options.digest) {
    const ContentDigest content = digest_adapter(options.operand, options.follow_links);
    return {digest_text(content), digest_json(content)};
  }
  const AdapterInspection inspection = inspect_adapter(options.operand, options.follow_links);
  return {inspection_text(inspection), inspection_json(inspection)};
}

/// What a state trains: the tensors of its masters.
struct Trained {
  int64_t tensors = 0, parameters = 0;
};

Trained trained_in(const SavedState& state) {
  Trained trained;
  for (const SafetensorsFile& masters : open_weights(state)) {
    for (const SafetensorsEntry& entry : masters.header().entries) {
      ++trained.tensors;
      trained.parameters += static_cast<int64_t>((entry.end - entry.begin) / sizeof(float));
    }
  }
  return trained;
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
  const Trained trained = trained_in(state);
  view.text =
      fmt::format("saved state of step {}, valid; {} in {} trained\n", state.step,
                  counted(trained.parameters, "parameter"), counted(trained.tensors, "tensor"));
  for (const StateDigest::Item& item : state.digest.components) {
    items.emplace_back(item.name, item.digest.hex());
    view.text += "  " + item.digest.hex() + "  " + item.name + "\n";
  }
  view.json["kind"] = "saved_state";
  view.json["step"] = state.step;
  view.json["trained_parameters"] = trained.parameters;
  view.json["trained_tensors"] = trained.tensors;
  view.json["components"] = Json(std::move(items));
  view.json["root"] = state.digest.root.hex();
  return view;
}

/// The name of a run's result; nothing if it has none yet.
std::string result_of(const std::string& directory) {
  for (const std::string name : {"model", "adapter"}) {
    if (file_info(directory + "/" + name).kind == FileKind::directory) return name;
  }
  return "";
}

Shown view_run(const std::string& directory, bool digest) {
  const std::string result = result_of(directory);
  if (digest) {
    throw usage_error("--digest: {0} is a run directory; name {0}/{1} or one of {0}/state/step-*",
                      directory, result.empty() ? "model" : result);
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
  std::optional<Trained> trained;
  if (newest) {
    trained = trained_in(*newest);
    view.text +=
        fmt::format("  newest valid state: step {}; {} in {} trained\n", newest->step,
                    counted(trained->parameters, "parameter"), counted(trained->tensors, "tensor"));
  }
  view.text += result.empty() ? "  no result yet\n" : "  result in " + result + "/\n";
  view.json["kind"] = "run";
  view.json["states"] = Json(std::move(states));
  view.json["rejected"] = Json(std::move(rejected));
  view.json["trained_parameters"] = trained ? Json(trained->parameters) : Json(nullptr);
  view.json["newest_step"] = newest ? Json(newest->step) : Json(nullptr);
  view.json["result"] = result.empty() ? Json(nullptr) : Json(result);
  return view;
}

}  // namespace

ExitCode run_inspect(const Options& options) {
  Shown view;
  const DirectoryKind kind = directory_kind(options.operand);
  if (kind != DirectoryKind::checkpoint && !(options.trainable.empty() && options.freeze.empty())) {
    throw usage_error("--trainable, --freeze: {} is not a checkpoint; leave them out",
                      options.operand);
  }
  switch (kind) {
    case DirectoryKind::checkpoint: view = view_checkpoint(options); break;
    case DirectoryKind::adapter: view = view_adapter(options); break;
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
