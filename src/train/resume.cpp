#include "train/resume.h"

#include "base/file_ops.h"
#include "base/setting.h"
#include "base/version.h"
#include "budget/domain_choice.h"
#include "data/samples/row_key.h"
#include "model/adapters.h"
#include "state/state_adapter.h"

namespace hearth {

namespace {

using Digests = std::vector<std::pair<std::string, Digest>>;

FileDigests file_digests(const Digests& digests) {
  FileDigests files;
  for (const auto& [file, digest] : digests) files.push_back({file, digest.hex()});
  return files;
}

IdentityOptions options_of(const TrainConfig& config) {
  IdentityOptions options;
  for (const TrainConfig::Recorded& option : config.recorded) {
    if (!option.may_change) options.push_back({option.name, option.value, option.is_default});
  }
  return options;
}

/// The file that --chat-template names; none if it names a template of the model or `chatml`.
Digests template_digest(const TrainConfig& config) {
  const std::string& name = config.chat_template;
  if (name.empty() || name == "chatml" || file_info(name).kind == FileKind::none) return {};
  return {{name, digest_of_file(name, [](uint64_t) {})}};
}

/// Names and shapes of the trained tensors, which are those of the masters and moments.
Digest trained_tensors(const ParameterTable& table) {
  Hasher hasher;
  for (const Tensor& t : table.tensors()) {
    if (!t.trainable) continue;
    hasher.update_field(t.name);
    hasher.update_u64(static_cast<uint64_t>(t.rows));
    hasher.update_u64(static_cast<uint64_t>(t.cols));
  }
  return hasher.digest();
}

IdentityFacts build_facts() {
  const BuildInfo& build = build_info();
  return {{"version", {build.version}},   {"revision", {build.revision}},
          {"compiler", {build.compiler}}, {"flags", {build.flags}},
          {"type", {build.build_type}},   {"sanitizers", {build.sanitizers}}};
}

IdentityFacts machine_facts(const PlacedModel& model) {
  const OpenedModel& opened = *model.opened;
  std::vector<std::string> devices, libraries;
  for (const Json& device : devices_json(model)) devices.push_back(device.as_string());
  for (const ComputePlace& place : opened.devices.places) {
    for (const OpLibrary& library : place.ops->libraries()) {
      libraries.push_back(place.budget.name + ' ' + library.name + ' ' + library.version);
    }
  }
  return {{"cpu", {opened.topology.cpu_model}},
          {"instructions", {opened.place(kHostPlace).ops->instructions()}},
          {"devices", devices, true},
          {"libraries", libraries, true}};
}

}  // namespace

RunIdentity identity_of_run(const TrainConfig& config, const PlacedModel& model,
                            const Digests& data, const Digests& eval_data) {
  const OpenedModel& opened = *model.opened;
  RunIdentity identity;
  identity.options = options_of(config);
  identity.trained = trained_tensors(model.table).hex();
  identity.compute_dtype = name_of(model.settings.compute);
  const RankShards& shards = model.plan.shards;
  if (shards.wire.compresses() && !shards.wire.consistent) identity.owners = domains_text(shards);
  identity.chat_template = file_digests(template_digest(config));
  identity.model = file_digests(opened.checkpoint->digests());
  identity.data = file_digests(data);
  identity.eval_data = file_digests(eval_data);
  if (opened.adapter) identity.adapter = file_digests(opened.adapter->digests());
  identity.build = build_facts();
  identity.machine = machine_facts(model);
  if (has_adapters(model.table)) identity.lora = adapter_scales(model.table);
  return identity;
}

Json determinism_record(const SavedState* from, const std::vector<IdentityChange>& changes) {
  JsonArray list;
  if (from != nullptr) {
    const RunIdentity before = identity_in(from->extra);
    const Json* kept =
        before.determinism.value ? before.determinism.value->find("changes") : nullptr;
    if (kept != nullptr && kept->is_array()) list = kept->as_array();
  }
  for (const IdentityChange& change : changes) {
    if (change.keeps_bits) continue;
    list.push_back(JsonObject{{"after_step", from->step}, {"change", change.text}});
  }
  return JsonObject{{"level", "replay-exact"}, {"changes", std::move(list)}};
}

void require_same_model(const SavedState& state, const Checkpoint& base) {
  const RunIdentity saved = identity_in(state.extra);
  if (!saved.model.value) {
    throw storage_error(state.directory + "/manifest.json: lacks 'model'");
  }
  RunIdentity now;
  now.model = file_digests(base.digests());
  require_same_content(saved.model, now.model,
                       "give " + spelled(Setting::model) + " the checkpoint that was trained");
}

}  // namespace hearth
