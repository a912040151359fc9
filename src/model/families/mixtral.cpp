// Mixtral: MixtralConfig of transformers 4 and 5.
#include "model/families/decoder_config.h"
#include "model/families/decoder_family.h"
#include "model/families/families.h"

namespace hearth {
namespace {

class Mixtral final : public DecoderFamily {
 public:
  std::string model_type() const override { return "mixtral"; }

  ModelSpec read_config(const Json& json, const std::string& source) const override {
    const ConfigReader config(json, source);
    ModelSpec spec = read_decoder(config, source, config.is_null("num_key_value_heads"));
    spec.family = model_type();
    read_window(config, spec);
    check_layer_types(config, spec);
    read_experts(config, "num_local_experts", "intermediate_size", spec);
    if (config.number("router_jitter_noise", -1e6, 1e6, 0) > 0) {
      config.refuse("router_jitter_noise",
                    "noise on the input of experts is not supported, only 0");
    }
    spec.normalize_weights = true;
    spec.aux_loss = config.number("router_aux_loss_coef", 0, 1e6, 0.001);
    check_total(config, spec);
    // What the class has where the file says nothing.
    spec.eos_ids =
        config.is_absent("eos_token_id") ? std::vector<int64_t>{2} : read_eos_ids(json, source);
    return spec;
  }

 protected:
  ExpertNames expert_names() const override { return {"block_sparse_moe.", "w1", "w3", "w2"}; }
};

}  // namespace

const Family& mixtral_family() {
  static const Mixtral family;
  return family;
}

}  // namespace hearth
