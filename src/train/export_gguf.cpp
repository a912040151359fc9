#include "train/export_gguf.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/paths.h"
#include "base/pool.h"
#include "base/setting.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_write.h"
#include "checkpoint/hub_cache.h"
#include "checkpoint/model_files.h"
#include "data/chat/template_files.h"
#include "data/tokenizer/gguf_vocabulary.h"
#include "peft/adapter.h"
#include "peft/merged_weights.h"
#include "state/run_identity.h"
#include "state/state_adapter.h"
#include "topology/topology.h"
#include "train/resume.h"
#include "train/signals.h"
#include "train/state_to_export.h"
#include "train/trained_tensors.h"

namespace hearth {
namespace {

/// Trained tensors of a saved state, rounded once; all others of the base.
class StateWeights final : public WeightSource {
 public:
  StateWeights(std::span<const SafetensorsFile> trained, CheckpointWeights& base) : base_(base) {
    for (const SafetensorsFile& file : trained) {
      for (const SafetensorsEntry& entry : file.header().entries) {
        entries_.emplace(trained_tensor(file, entry, base.table()), Saved{file, entry});
      }
    }
  }

  void read(TensorId id, int64_t row, int64_t rows, float* out) override {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return base_.read(id, row, rows, out);
    const Tensor& tensor = base_.table().tensor(id);
    const auto n = static_cast<size_t>(rows * tensor.cols);
    found->second.file.read(found->second.entry, out, n * sizeof(float),
                            static_cast<size_t>(row * tensor.cols) * sizeof(float));
    stored_.resize(n * size_of(tensor.stored));
    convert(DType::f32, out, tensor.stored, stored_.data(), static_cast<int64_t>(n));
    convert(tensor.stored, stored_.data(), DType::f32, out, static_cast<int64_t>(n));
  }

 private:
  struct Saved {
    const SafetensorsFile& file;
    const SafetensorsEntry& entry;
  };
  CheckpointWeights& base_;
  std::unordered_map<TensorId, Saved> entries_;
  std::vector<std::byte> stored_;
};

std::string last_part(const std::string& name) {
  const std::string path = without_trailing_slashes(name);
  return path.substr(path.rfind('/') + 1);
}

/// The templates of the result, those that it carries or the base's; none if it has none.
std::vector<TemplateSource> templates_or_base(std::vector<TemplateSource> carried,
                                              const TemplateOptions& options) {
  if (!carried.empty()) return carried;
  try {
    return find_templates(options);
  } catch (const Error&) {  // said where a chat needs one
    return {};
  }
}

void add_templates(const std::vector<TemplateSource>& templates, GgufMetadata& metadata) {
  std::vector<std::string> names;
  for (const TemplateSource& source : templates) {
    std::string name = source.name;
    std::replace_if(
        name.begin(), name.end(),
        [](char c) {
          return !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
        },
        '_');
    const bool is_default = source.name == "default";
    const std::string key = "tokenizer.chat_template" + (is_default ? "" : "." + name);
    if (metadata.has(key)) continue;
    metadata.add_text(key, source.text);
    if (!is_default) names.push_back(name);
  }
  if (!names.empty()) metadata.add_texts("tokenizer.chat_templates", names);
}

/// The recommended sampling of generation_config.json.
void add_sampling(const std::string& model, bool follow_links, GgufMetadata& metadata) {
  const char* name = "generation_config.json";
  if (!has_model_file(model, name)) return;
  const Json config = read_json_file(model_file(model, name, follow_links), kMaxConfigBytes);
  const Json* top_k = config.find("top_k");
  if (top_k != nullptr && top_k->is_integer() && top_k->as_int() >= 0 &&
      top_k->as_int() < (int64_t{1} << 31)) {
    metadata.add_i32("general.sampling.top_k", static_cast<int32_t>(top_k->as_int()));
  }
  const std::pair<const char*, const char*> numbers[] = {
      {"top_p", "top_p"}, {"min_p", "min_p"}, {"temperature", "temp"}};
  for (const auto& [key, of_file] : numbers) {
    const Json* value = config.find(key);
    if (value == nullptr || !value->is_number()) continue;
    metadata.add_f32(std::string("general.sampling.") + of_file,
                     static_cast<float>(value->as_double()));
  }
}

/// A model, opened, that becomes a file.
class GgufExport {
 public:
  GgufExport(const GgufConfig& config, const std::string& given, Reporter& reporter)
      : config_(config),
        reporter_(reporter),
        name_(config.model_name.empty() ? given : config.model_name),
        directory_(directory_of(given)),
        base_(directory_, config.follow_links),
        weights_(base_) {
    require_gguf_form(base_.spec(), directory_ + "/config.json");
    files_ = read_tokenizer_files(directory_, config.follow_links);
  }

  const Checkpoint& base() const { return base_; }
  CheckpointWeights& weights() { return weights_; }
  TemplateOptions templates() const {
    return {directory_, "", "", config_.follow_links, config_.adapter};
  }

  void write(WeightSource& source, const std::vector<TemplateSource>& carried) {
    const ModelSpec& spec = base_.spec();
    GgufMetadata metadata;
    metadata.add_text("general.architecture", gguf_architecture(spec));
    metadata.add_text("general.type", "model");
    add_sampling(directory_, config_.follow_links, metadata);
    metadata.add_text("general.name", last_part(name_of_model(name_, directory_).name));
    metadata.add_text("general.size_label", gguf_size_label(weights_.table(), spec));
    add_gguf_model(spec, config_.type, metadata);
    metadata.add_u32("general.quantization_version", 2);
    add_gguf_vocabulary(files_, spec.vocabulary, gguf_architecture(spec), metadata);
    add_templates(templates_or_base(carried, templates()), metadata);
    for (const std::string& line : gguf_differences(spec)) reporter_.warn(line);
    if (files_.tokenizer.is_null()) {
      reporter_.warn(directory_ + ": no tokenizer.json, so the file has no tokenizer either");
    }
    write_gguf(source, weights_.table(), spec, config_.type, metadata, config_.out);
    reporter_.note(gguf_architecture(spec) + " as " + std::string(name_of(config_.type)) + ": " +
                   config_.out);
  }

 private:
  static std::string directory_of(const std::string& given) {
    std::string model = find_model(given);
    if (file_info(model).kind != FileKind::directory) {
      throw input_error("{}: not a directory; give the model ({})", model, spelled(Setting::model));
    }
    return model;
  }

  const GgufConfig& config_;
  Reporter& reporter_;
  std::string name_, directory_;
  Checkpoint base_;
  CheckpointWeights weights_;
  TokenizerFiles files_;
};

Pool pool_of_cores() { return Pool(static_cast<int>(detect_topology().cores.size()), {}); }

void export_state_as_gguf(const GgufConfig& config, Reporter& reporter) {
  const SavedState state = find_state_to_export(config.from_state, reporter);
  GgufExport file(config, config.model.empty() ? model_of_state(state) : config.model, reporter);
  require_same_model(state, file.base());
  const std::vector<TemplateSource> templates = templates_of_state(state, reporter);
  const std::vector<SafetensorsFile> trained = open_weights(state);
  const RunIdentity run = identity_in(state.extra);
  if (!run.lora.value) {
    StateWeights weights(trained, file.weights());
    return file.write(weights, templates);
  }
  LoadedAdapter adapter(saved_adapters(file.base(), trained, *run.lora.value));
  read_trained(trained, adapter.table);
  const Pool pool = pool_of_cores();
  MergedWeights weights(adapter.table, file.weights(), pool);
  file.write(weights, templates);
}

}  // namespace

void export_gguf(const GgufConfig& config, Reporter& reporter) {
  const StopSignals signals;  // what is half written does not stay beside --out
  require_new(config.out);
  if (!config.from_state.empty()) return export_state_as_gguf(config, reporter);
  GgufExport file(config, config.model, reporter);
  if (config.adapter.empty()) return file.write(file.weights(), {});
  const AdapterFile adapter(config.adapter, file.base(),
                            {config.accept_other_base, config.fused_as_peft, config.follow_links});
  const LoadedAdapter loaded(adapter, file.base());
  const Pool pool = pool_of_cores();
  MergedWeights weights(loaded.table, file.weights(), pool);
  file.write(weights, carried_templates(file.templates()));
}

}  // namespace hearth
