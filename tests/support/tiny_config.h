// The config.json of a small model.
#pragma once

#include <string>

#include "base/json.h"

namespace hearth::test {

/// config.json of a Qwen3-MoE model with two MoE layers; `changes` overrides keys.
inline std::string tiny_config(const JsonObject& changes = {}) {
  Json config = parse_json(R"({"model_type":"qwen3_moe","vocab_size":37,"hidden_size":24,
    "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,
    "intermediate_size":20,"moe_intermediate_size":12,"num_experts":5,"num_experts_per_tok":2,
    "norm_topk_prob":true,"decoder_sparse_step":1,"mlp_only_layers":[],"hidden_act":"silu",
    "rms_norm_eps":1e-6,"max_position_embeddings":64,"rope_theta":10000.0,
    "router_aux_loss_coef":0.01})",
                           "tiny config");
  for (const auto& [key, value] : changes) config[key] = value;
  return config.dump();
}

}  // namespace hearth::test
