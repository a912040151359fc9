// Qwen3-MoE: Qwen3MoeConfig of transformers 4 and 5.
#include "model/families/decoder_config.h"
#include "model/families/decoder_family.h"
#include "model/families/families.h"

namespace hearth {
namespace {

class Qwen3Moe final : public DecoderFamily {
 public:
  std::string model_type() const override { return "qwen3_moe"; }

  ModelSpec read_config(const Json& json, const std::string& source) const override {
    const ConfigReader config(json, source);
    ModelSpec spec = read_decoder(config, source, false);
    spec.family = model_type();
    spec.qk_norm = QkNorm::head;
    spec.qkv_bias = spec.o_bias = config.boolean("attention_bias", false);
    if (config.boolean("use_sliding_window", false)) {
      // Absent would be 4096 in transformers, a size that is not guessed here.
      if (config.is_absent("sliding_window"))
        config.refuse("sliding_window", "required, and never guessed");
      read_window(config, spec);
    }
    check_layer_types(config, spec);
    read_experts(config, "num_experts", "moe_intermediate_size", spec);
    read_dense_layers(config, spec);
    spec.normalize_weights = config.boolean("norm_topk_prob", false);
    spec.aux_loss = config.number("router_aux_loss_coef", 0, 1e6, 0.001);
    check_total(config, spec);
    spec.eos_ids = read_eos_ids(json, source);
    return spec;
  }
};

}  // namespace

const Family& qwen3_moe_family() {
  static const Qwen3Moe family;
  return family;
}

}  // namespace hearth
