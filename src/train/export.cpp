#include "train/export.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "base/arena.h"
#include "base/error_format.h"
#include "base/file_failure.h"
#include "base/file_ops.h"
#include "base/pool.h"
#include "base/setting.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_write.h"
#include "checkpoint/hub_cache.h"
#include "checkpoint/model_card.h"
#include "checkpoint/model_files.h"
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
#include "topology/topology.h"
#include "train/card_rows.h"
#include "train/resume.h"
#include "train/signals.h"
#include "train/state_to_export.h"
#include "train/trained_tensors.h"

namespace hearth {

namespace {

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

}  // namespace

/// What the adapter's card says about its training.
static std::string training_of_adapter(const MergeConfig& config) {
  try {
    const std::string path = model_file(config.adapter, "README.md", config.follow_links);
    return training_table_of(read_text_file(path, kMaxConfigBytes));
  } catch (const Error&) {  // without a card, or with one that is not this program's
    return "";
  }
}

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
  FileChanges changes =
      template_changes(carried_templates({model, "", "", config.follow_links, config.adapter}),
                       model, config.follow_links);
  const ModelName name =
      name_of_model(config.model_name.empty() ? config.model : config.model_name, model);
  changes["README.md"] =
      model_card(card_base(name.name, name.revision, base.directory(), config.follow_links),
                 "with an adapter merged", training_of_adapter(config));
  write_merged(loaded.table, base, pool, config.out, changes);
  reporter.note("merged " + config.adapter + " into " + model + ": " + config.out);
}

void export_state(const ExportConfig& config, Reporter& reporter) {
  const StopSignals signals;
  require_new(config.out);
  const SavedState state = find_state_to_export(config.from_state, reporter);
  const std::string given = config.model.empty() ? model_of_state(state) : config.model;
  const std::string model = find_model(given);
  if (file_info(model).kind != FileKind::directory) {
    throw input_error("{}: not a directory; give the model that was trained ({})", model,
                      spelled(Setting::model));
  }
  const Checkpoint base(model, config.follow_links);
  require_same_model(state, base);
  const RunIdentity run = identity_in(state.extra);
  FileChanges changes =
      template_changes(templates_of_state(state, reporter), model, config.follow_links);
  const CardRows card =
      card_rows(state.extra, state.step, parent_of(parent_of(state.directory)) + "/journal.jsonl");
  const ModelName name =
      name_of_model(config.model_name.empty() ? given : config.model_name, model);
  const std::vector<SafetensorsFile> weights = open_weights(state);
  if (run.lora.value) {
    LoadedAdapter trained(saved_adapters(base, weights, *run.lora.value));
    read_trained(weights, trained.table);
    const bool was_fused = run.option("adapter-layout") == "fused";
    const AdapterLayout layout =
        config.layout.value_or(was_fused ? AdapterLayout::fused : AdapterLayout::per_expert);
    AdapterFileOptions options;
    options.layout = layout;
    options.card = card;
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
  changes["README.md"] =
      model_card(card_base(name.name, name.revision, base.directory(), config.follow_links),
                 "fine-tuned", training_table(card));
  write_checkpoint(table, base, config.out, changes);
  reporter.note("state of step " + std::to_string(state.step) + " as a checkpoint: " + config.out);
}

}  // namespace hearth
