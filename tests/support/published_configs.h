// Configurations and exact parameter counts of published models, to test plans and tables without a
// checkpoint.
#pragma once

#include <cstdint>

namespace hearth::test {

struct PublishedModel {
  const char* name;
  const char* config;  // config.json
  int64_t parameters;
};

inline constexpr PublishedModel kQwen3Moe30B = {"Qwen3-30B-A3B", R"({
  "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "torch_dtype": "bfloat16",
  "vocab_size": 151936, "hidden_size": 2048, "num_hidden_layers": 48,
  "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "attention_bias": false,
  "attention_dropout": 0.0, "num_experts": 128, "num_experts_per_tok": 8,
  "moe_intermediate_size": 768, "intermediate_size": 6144, "decoder_sparse_step": 1,
  "mlp_only_layers": [], "norm_topk_prob": true, "router_aux_loss_coef": 0.001,
  "output_router_logits": false, "hidden_act": "silu", "initializer_range": 0.02,
  "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "rope_scaling": null, "sliding_window": null, "use_sliding_window": false,
  "max_window_layers": 48, "tie_word_embeddings": false, "use_cache": true,
  "bos_token_id": 151643, "eos_token_id": 151645})",
                                                30'532'122'624};

inline constexpr PublishedModel kOlmoe7B = {"OLMoE-1B-7B-0924", R"({
  "architectures": ["OlmoeForCausalLM"], "model_type": "olmoe", "torch_dtype": "bfloat16",
  "vocab_size": 50304, "hidden_size": 2048, "num_hidden_layers": 16,
  "num_attention_heads": 16, "num_key_value_heads": 16, "attention_bias": false,
  "attention_dropout": 0.0, "clip_qkv": null, "num_experts": 64, "num_experts_per_tok": 8,
  "intermediate_size": 1024, "norm_topk_prob": false, "router_aux_loss_coef": 0.01,
  "output_router_logits": false, "hidden_act": "silu", "initializer_range": 0.02,
  "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
  "rope_scaling": null, "tie_word_embeddings": false, "use_cache": true,
  "pad_token_id": 1, "eos_token_id": 50279})",
                                            6'919'161'856};

inline constexpr PublishedModel kMixtral8x7B = {"Mixtral-8x7B-v0.1", R"({
  "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "torch_dtype": "bfloat16",
  "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "attention_dropout": 0.0,
  "num_local_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 14336,
  "router_aux_loss_coef": 0.02, "output_router_logits": false, "hidden_act": "silu",
  "initializer_range": 0.02, "max_position_embeddings": 32768, "rms_norm_eps": 1e-05,
  "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false,
  "use_cache": true, "bos_token_id": 1, "eos_token_id": 2})",
                                                46'702'792'704};

inline constexpr PublishedModel kQwen2Moe14B = {"Qwen1.5-MoE-A2.7B", R"({
  "architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "torch_dtype": "bfloat16",
  "vocab_size": 151936, "hidden_size": 2048, "num_hidden_layers": 24,
  "num_attention_heads": 16, "num_key_value_heads": 16, "attention_dropout": 0.0,
  "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
  "shared_expert_intermediate_size": 5632, "intermediate_size": 5632, "decoder_sparse_step": 1,
  "norm_topk_prob": false, "router_aux_loss_coef": 0.001, "output_router_logits": false,
  "hidden_act": "silu", "initializer_range": 0.02, "max_position_embeddings": 8192,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
  "use_sliding_window": false, "max_window_layers": 21, "tie_word_embeddings": false,
  "use_cache": true, "bos_token_id": 151643, "eos_token_id": 151643})",
                                                14'315'784'192};

}  // namespace hearth::test
