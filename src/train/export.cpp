#include "train/export.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "base/arena.h"
#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/pool.h"
#include "base/setting.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_write.h"
#include "checkpoint/hub_cache.h"
#include "checkpoint/safetensors.h"
#include "data/chat/template_files.h"
#include "device/device.h"
#include "device/host_device.h"
#include "model/parameter_memory.h"
#include "peft/adapter.h"
#include "peft/merge.h"
#include "peft/write.h"
#include "state/run_identity.h"
#include "state/saved_state.h"
#include "state/state_adapter.h"
#include "state/state_search.h"
#include "topology/topology.h"
#include "train/resume.h"
#include "train/signals.h"

namespace hearth {

namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // elements read at a time

SavedState find_state(const std::string& path, Reporter& reporter) {
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

/// The --model of the run that saved the state.
std::string model_of(const SavedState& state) {
  if (const auto text = identity_in(state.extra).option("model")) {
    const Json name = parse_json(*text, state.directory + "/manifest.json");
    if (name.is_string()) return name.as_string();
  }
  throw input_error("{}: does not name the model that was trained; give {}", state.directory,
                    spelled(Setting::model));
}

/// The chat templates that the run trained with, where they are not those of its base.
std::vector<TemplateSource> templates_of(const SavedState& state, Reporter& reporter) {
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

/// Memory for every weight in its stored type.
class StoredWeights {
 public:
  explicit StoredWeights(ParameterTable& table)
      : device_(make_host_device(std::numeric_limits<uint64_t>::max())) {
    std::array<std::byte*, kCopyRoles> arenas{};
    const CopyPolicy policy;
    for (const ParameterArena& arena : parameter_arenas(table, policy)) {
      memory_.push_back(device_->reserve(arena.name, SpaceKind::host, arena.bytes));
      arenas[static_cast<size_t>(arena.role)] = memory_.back()->data();
    }
    bind_parameters(table, policy, arenas);
  }

 private:
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Arena>> memory_;
};

/// Replaces what was trained, rounded once.
void read_trained(const SafetensorsFile& file, ParameterTable& table) {
  std::vector<float> piece(static_cast<size_t>(kPiece));
  for (const SafetensorsEntry& entry : file.header().entries) {
    const auto id = table.find(entry.name);
    const uint64_t bytes = entry.end - entry.begin;
    if (!id || entry.dtype != "F32" ||
        bytes != static_cast<uint64_t>(table.tensor(*id).size()) * sizeof(float)) {
      throw input_error(
          "{}: tensor {} does not fit the model; give the model that was trained ({})", file.path(),
          quoted(entry.name), spelled(Setting::model));
    }
    const View home = table.tensor(*id).home().view;
    for (int64_t at = 0; at < table.tensor(*id).size(); at += kPiece) {
      const int64_t n = std::min(kPiece, table.tensor(*id).size() - at);
      const auto offset = static_cast<size_t>(at);
      file.read(entry, piece.data(), static_cast<size_t>(n) * sizeof(float),
                offset * sizeof(float));
      auto* target = static_cast<std::byte*>(home.raw()) + offset * size_of(home.dtype);
      convert(DType::f32, piece.data(), home.dtype, target, n);
    }
  }
}

}  // namespace

namespace {

void require_new(const std::string& out) {
  const FileInfo info = file_info(out);
  if (info.is_link || info.kind != FileKind::none) {
    throw usage_error("{}: exists already, nothing was written; choose another name",
                      spelled(Setting::out, quoted(out)));
  }
}

}  // namespace

void export_merged(const MergeConfig& config, Reporter& reporter) {
  const StopSignals signals;  // what is half written does not stay beside --out
  require_new(config.out);
  const std::string model = find_model(config.model);
  if (file_info(model).kind != FileKind::directory) throw input_error("{}: not a directory", model);
  const Checkpoint base(model, config.follow_links);
  const AdapterFile file(config.adapter, base,
                         {config.accept_other_base, config.fused_as_peft, config.follow_links});
  const LoadedAdapter loaded(file, base);
  const Topology topology = detect_topology();
  const Pool pool(static_cast<int>(topology.cores.size()), {});
  const FileChanges changes =
      template_changes(carried_templates({model, "", "", config.follow_links, config.adapter}),
                       model, config.follow_links);
  write_merged(loaded.table, base, pool, config.out, changes);
  reporter.note("merged " + config.adapter + " into " + model + ": " + config.out);
}

void export_state(const ExportConfig& config, Reporter& reporter) {
  const StopSignals signals;
  require_new(config.out);
  const SavedState state = find_state(config.from_state, reporter);
  const std::string given = config.model.empty() ? model_of(state) : config.model;
  const std::string model = find_model(given);
  if (file_info(model).kind != FileKind::directory) {
    throw input_error("{}: not a directory; give the model that was trained ({})", model,
                      spelled(Setting::model));
  }
  const Checkpoint base(model, config.follow_links);
  require_same_model(state, base);
  const RunIdentity run = identity_in(state.extra);
  const FileChanges changes =
      template_changes(templates_of(state, reporter), model, config.follow_links);
  const SafetensorsFile weights(state.directory + "/weights.safetensors");
  if (run.lora.value) {
    LoadedAdapter trained(saved_adapters(base, weights, *run.lora.value));
    read_trained(weights, trained.table);
    const bool was_fused = run.option("adapter-layout") == "fused";
    const AdapterLayout layout =
        config.layout.value_or(was_fused ? AdapterLayout::fused : AdapterLayout::per_expert);
    AdapterFileOptions options;
    options.layout = layout;
    const ModelName name =
        name_of_model(config.model_name.empty() ? given : config.model_name, model);
    options.base_name = name.name;
    options.revision = name.revision;
    options.changes = changes;
    write_adapter(trained.table, base, options, config.out);
    reporter.note("state of step " + std::to_string(state.step) + " as an adapter: " + config.out);
    return;
  }
  ParameterTable table = base.make_table();
  const StoredWeights memory(table);
  const Topology topology = detect_topology();
  const Pool pool(static_cast<int>(topology.cores.size()), {});
  base.read_weights(table, pool);
  read_trained(weights, table);
  write_checkpoint(table, base, config.out, changes);
  reporter.note("state of step " + std::to_string(state.step) + " as a checkpoint: " + config.out);
}

}  // namespace hearth
