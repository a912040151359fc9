// OLMoE: OlmoeConfig of transformers 4 and 5.
#include "model/families/decoder_config.h"
#include "model/families/decoder_family.h"
#include "model/families/families.h"

namespace hearth {
namespace {

class Olmoe final : public DecoderFamily {
 public:
  std::string model_type() const override { return "olmoe"; }

  ModelSpec read_config(const Json& json, const std::string& source) const override {
    const ConfigReader config(json, source);
    ModelSpec spec = read_decoder(config, source, true);
    spec.family = model_type();
    spec.qk_norm = QkNorm::whole;
    if (spec.heads * spec.head_dim != spec.hidden) {
      config.refuse("head_dim", "the norm of all heads together has hidden_size elements, " +
                                    std::to_string(spec.hidden));
    }
    spec.qkv_bias = spec.o_bias = config.boolean("attention_bias", false);
    if (config.find("clip_qkv") != nullptr) {
      spec.qkv_limit = config.number("clip_qkv", 1e-30, 1e30);
    }
    if (config.find("sliding_window") != nullptr) {
      config.refuse("sliding_window",
                    "for this family it has an effect in transformers with some implementations "
                    "of attention only; remove it");
    }
    check_layer_types(config, spec);
    read_experts(config, "num_experts", "intermediate_size", spec);
    spec.normalize_weights = config.boolean("norm_topk_prob", false);
    spec.aux_loss = config.number("router_aux_loss_coef", 0, 1e6, 0.01);
    check_total(config, spec);
    // What the class has where the file says nothing.
    if (config.is_absent("pad_token_id")) spec.padding_id = 1;
    spec.eos_ids =
        config.is_absent("eos_token_id") ? std::vector<int64_t>{50279} : read_eos_ids(json, source);
    return spec;
  }
};

}  // namespace

const Family& olmoe_family() {
  static const Olmoe family;
  return family;
}

}  // namespace hearth
