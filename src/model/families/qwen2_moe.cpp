// Qwen2-MoE: Qwen2MoeConfig of transformers 4 and 5.
#include <algorithm>

#include "model/families/decoder_config.h"
#include "model/families/decoder_family.h"
#include "model/families/families.h"

namespace hearth {
namespace {

/// Which layers have a window: what layer_types says, else every second one of the first
/// max_window_layers, beginning with the first.
std::vector<bool> sliding_layers(const ConfigReader& config, const ModelSpec& spec) {
  std::vector<bool> sliding(static_cast<size_t>(spec.layers));
  const Json* types = config.find("layer_types");
  if (types == nullptr) {
    if (!config.boolean("use_sliding_window", false)) return sliding;
    const int64_t end = config.integer("max_window_layers", 0, kMaxPositions);
    for (int64_t i = 0; i < spec.layers; ++i) {
      sliding[static_cast<size_t>(i)] = i % 2 == 0 && i < end;
    }
    return sliding;
  }
  const std::string expected = "expected a list of " + std::to_string(spec.layers) +
                               " times \"full_attention\" or \"sliding_attention\"";
  if (!types->is_array() || types->as_array().size() != sliding.size()) {
    config.refuse("layer_types", expected);
  }
  for (size_t i = 0; i < sliding.size(); ++i) {
    const Json& type = types->as_array()[i];
    const std::string name = type.is_string() ? type.as_string() : "";
    if (name != "full_attention" && name != "sliding_attention") {
      config.refuse("layer_types", expected);
    }
    sliding[i] = name == "sliding_attention";
  }
  return sliding;
}

void read_windows(const ConfigReader& config, ModelSpec& spec) {
  const std::vector<bool> sliding = sliding_layers(config, spec);
  if (std::find(sliding.begin(), sliding.end(), true) == sliding.end()) return;
  if (!config.boolean("use_sliding_window", false)) {
    config.refuse("layer_types", "asks for windows, but use_sliding_window is not true");
  }
  const int64_t window = config.integer("sliding_window", 1, kMaxPositions);
  for (size_t i = 0; i < sliding.size(); ++i) spec.windows[i] = sliding[i] ? window : 0;
}

class Qwen2Moe final : public DecoderFamily {
 public:
  std::string model_type() const override { return "qwen2_moe"; }

  ModelSpec read_config(const Json& json, const std::string& source) const override {
    const ConfigReader config(json, source);
    ModelSpec spec = read_decoder(config, source, false);
    spec.family = model_type();
    spec.qkv_bias = config.boolean("qkv_bias", true);
    read_windows(config, spec);
    read_experts(config, "num_experts", "moe_intermediate_size", spec);
    read_dense_layers(config, spec);
    if (spec.moe_layers() > 0) {
      spec.shared_width = config.integer("shared_expert_intermediate_size", 1, kMaxWidth);
    }
    spec.normalize_weights = config.boolean("norm_topk_prob", false);
    spec.aux_loss = config.number("router_aux_loss_coef", 0, 1e6, 0.001);
    check_total(config, spec);
    spec.eos_ids = read_eos_ids(json, source);
    return spec;
  }
};

}  // namespace

const Family& qwen2_moe_family() {
  static const Qwen2Moe family;
  return family;
}

}  // namespace hearth
