// config.json of OLMoE, Mixtral and Qwen2-MoE: what each honours, refuses and ignores, and the names
// of its tensors. Keys that all families read alike are tested in test_config.cpp.
#include "model_fixtures.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;

namespace {

Json config_of(const std::string& family, const std::string& more) {
  return parse_json("{\"model_type\": \"" + family + R"(", "vocab_size": 11, "hidden_size": 8,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "rope_theta": 10000.0,
    "num_experts_per_tok": 2, )" +
                        more + "}",
                    "config");
}

const Json kOlmoe = config_of("olmoe", R"("num_experts": 3, "intermediate_size": 5)");
const Json kMixtral = config_of("mixtral", R"("num_local_experts": 3, "intermediate_size": 5)");
const Json kQwen2 = config_of("qwen2_moe", R"("num_experts": 3, "moe_intermediate_size": 5,
    "shared_expert_intermediate_size": 7, "intermediate_size": 9)");

/// Name and shape of the tensors; the count is what the family says.
std::vector<std::string> tensors(const Json& config) {
  const ModelSpec spec = read_config(config);
  const Family& family = find_family(spec.family);
  const ParameterTable table = family.make_table(spec);
  CHECK(family.tensor_count(spec) == std::ssize(table.tensors()));
  std::vector<std::string> out;
  for (const Tensor& t : table.tensors()) {
    const std::string rows = t.vector ? "" : std::to_string(t.rows) + "x";
    out.push_back(t.name + " " + rows + std::to_string(t.cols));
  }
  return out;
}

using Windows = std::vector<int64_t>;

}  // namespace

TEST_CASE("OLMoE: switches", "[config]") {
  const ModelSpec spec = read_config(kOlmoe);
  CHECK(spec.family == "olmoe");
  CHECK(spec.qk_norm == QkNorm::whole);
  CHECK(spec.head_dim == 2);
  CHECK(spec.expert_width == 5);
  CHECK(spec.moe_layers() == 3);
  CHECK(spec.shared_width == 0);
  // What an absent key means, as in transformers' class.
  CHECK(spec.qkv_limit == 0);
  CHECK_FALSE(spec.normalize_weights);
  CHECK_FALSE(spec.qkv_bias);
  CHECK_FALSE(spec.o_bias);
  CHECK(spec.aux_loss == 0.01);
  CHECK(spec.padding_id == 1);
  CHECK(spec.eos_ids == std::vector<int64_t>{50279});
  CHECK(read_config(without(kOlmoe, "num_key_value_heads")).kv_heads == 4);

  CHECK(read_config(kOlmoe, "num_key_value_heads", "1").kv_heads == 1);
  CHECK(read_config(kOlmoe, "num_key_value_heads", "null").kv_heads == 4);
  CHECK(read_config(kOlmoe, "clip_qkv", "0.5").qkv_limit == 0.5);
  CHECK(read_config(kOlmoe, "clip_qkv", "8").qkv_limit == 8);
  CHECK(read_config(kOlmoe, "clip_qkv", "null").qkv_limit == 0);
  CHECK(read_config(kOlmoe, "norm_topk_prob", "true").normalize_weights);
  CHECK(read_config(kOlmoe, "attention_bias", "true").o_bias);
  CHECK(read_config(kOlmoe, "pad_token_id", "null").padding_id == -1);
  CHECK(read_config(kOlmoe, "pad_token_id", "4").padding_id == 4);
  CHECK(read_config(kOlmoe, "eos_token_id", "null").eos_ids.empty());
  CHECK(read_config(kOlmoe, "head_dim", "2").head_dim == 2);
  CHECK(read_config(kOlmoe, "num_local_experts", "3").experts == 3);

  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"clip_qkv", "0"},
           {"clip_qkv", "-1"},
           {"clip_qkv", "\"8\""},
           {"head_dim", "4"},  // the norm would not fit
           {"sliding_window", "16"},
           {"num_key_value_heads", "3"},
           {"hidden_act", "\"gelu\""},
           {"attention_dropout", "0.1"},
           {"num_local_experts", "4"},
           {"layer_types", R"(["full_attention", "full_attention", "sliding_attention"])"},
           {"rope_scaling", R"({"rope_type": "yarn", "factor": 2})"},
           {"quantization_config", "{}"}}) {
    INFO(key << " = " << value);
    CHECK_THAT(refused(kOlmoe, key, value), ContainsSubstring(key));
  }
  for (const char* key : {"intermediate_size", "num_experts", "num_experts_per_tok", "rope_theta",
                          "num_attention_heads", "rms_norm_eps"}) {
    CHECK_THAT(refused(without(kOlmoe, key)), ContainsSubstring(key));
  }
  // Without effect on this family in transformers.
  for (const char* key : {"mlp_only_layers", "moe_intermediate_size", "qkv_bias",
                          "decoder_sparse_step", "shared_expert_intermediate_size"}) {
    CHECK(refused(kOlmoe, key, "7").empty());
  }
}

TEST_CASE("OLMoE: tensors", "[config]") {
  const std::vector<std::string> all = tensors(changed(kOlmoe, "attention_bias", true));
  for (const char* name :
       {"self_attn.q_norm.weight 8", "self_attn.k_norm.weight 4", "self_attn.k_proj.weight 4x8",
        "self_attn.o_proj.bias 8", "mlp.gate.weight 3x8", "mlp.experts.2.gate_proj.weight 5x8",
        "mlp.experts.0.down_proj.weight 8x5"}) {
    CHECK(contains(all, std::string("model.layers.2.") + name));
  }
}

TEST_CASE("Mixtral: switches", "[config]") {
  const ModelSpec spec = read_config(kMixtral);
  CHECK(spec.family == "mixtral");
  CHECK(spec.qk_norm == QkNorm::none);
  CHECK(spec.normalize_weights);
  CHECK(spec.expert_width == 5);
  CHECK(spec.windows == Windows{0, 0, 0});
  CHECK_FALSE(spec.qkv_bias);
  CHECK(spec.aux_loss == 0.001);
  CHECK(spec.padding_id == -1);
  CHECK(spec.eos_ids == std::vector<int64_t>{2});

  CHECK(read_config(kMixtral, "sliding_window", "4").windows == Windows{4, 4, 4});
  CHECK(read_config(kMixtral, "sliding_window", "null").windows == Windows{0, 0, 0});
  CHECK(read_config(kMixtral, "num_key_value_heads", "null").kv_heads == 4);
  CHECK(read_config(kMixtral, "head_dim", "6").head_dim == 6);
  CHECK(read_config(kMixtral, "num_experts", "3").experts == 3);
  CHECK(read_config(kMixtral, "router_jitter_noise", "0.0").hidden == 8);

  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"router_jitter_noise", "0.01"},
           {"sliding_window", "0"},
           {"num_experts", "4"},
           {"attention_dropout", "0.5"},
           {"hidden_act", "\"relu\""},
           {"layer_types", R"(["sliding_attention", "full_attention", "full_attention"])"},
           {"rope_parameters", R"({"rope_theta": 1e6, "rope_type": "linear", "factor": 2})"}}) {
    INFO(key << " = " << value);
    CHECK_THAT(refused(kMixtral, key, value), ContainsSubstring(key));
  }
  for (const char* key : {"num_key_value_heads", "num_local_experts", "intermediate_size",
                          "num_experts_per_tok", "rope_theta"}) {
    INFO(key);
    CHECK_THAT(refused(without(kMixtral, key)), ContainsSubstring(key));
  }
  for (const char* key : {"norm_topk_prob", "attention_bias", "use_sliding_window"}) {
    CHECK(read_config(kMixtral, key, "false").normalize_weights);
    CHECK(read_config(kMixtral, key, "true").windows == Windows{0, 0, 0});
    CHECK_FALSE(read_config(kMixtral, key, "true").o_bias);
  }
}

TEST_CASE("Mixtral: tensors", "[config]") {
  const std::vector<std::string> all = tensors(kMixtral);
  for (const char* name :
       {"block_sparse_moe.gate.weight 3x8", "block_sparse_moe.experts.2.w1.weight 5x8",
        "block_sparse_moe.experts.2.w3.weight 5x8", "block_sparse_moe.experts.2.w2.weight 8x5"}) {
    CHECK(contains(all, std::string("model.layers.1.") + name));
  }
  // w1 is silu's argument, w3 its factor, w2 the way back.
  const ParameterTable table = find_family("mixtral").make_table(read_config(kMixtral));
  const auto slot = [&](const char* name) {
    const std::string prefix = "model.layers.0.block_sparse_moe.experts.1.";
    return table.tensor(*table.find(prefix + name + ".weight")).slot;
  };
  CHECK(slot("w1") == Slot::gate);
  CHECK(slot("w3") == Slot::up);
  CHECK(slot("w2") == Slot::down);
  // transformers' own name of the part, too.
  const Family& family = find_family("mixtral");
  CHECK(family.other_name("model.layers.0.block_sparse_moe.gate.weight") ==
        "model.layers.0.mlp.gate.weight");
  CHECK(family.other_name("model.layers.0.input_layernorm.weight").empty());
}

TEST_CASE("Qwen2-MoE: switches", "[config]") {
  const ModelSpec spec = read_config(kQwen2);
  CHECK(spec.family == "qwen2_moe");
  CHECK(spec.qk_norm == QkNorm::none);
  CHECK(spec.qkv_bias);
  CHECK_FALSE(spec.o_bias);
  CHECK_FALSE(spec.normalize_weights);
  CHECK(spec.shared_width == 7);
  CHECK(spec.expert_width == 5);
  CHECK(spec.has_shared_expert(0));
  CHECK_FALSE(spec.has_shared_expert(3));
  CHECK(spec.windows == Windows{0, 0, 0});
  CHECK(spec.eos_ids.empty());

  CHECK_FALSE(read_config(kQwen2, "qkv_bias", "false").qkv_bias);
  CHECK_FALSE(read_config(kQwen2, "attention_bias", "true").o_bias);
  CHECK(read_config(kQwen2, "norm_topk_prob", "true").normalize_weights);
  const ModelSpec mixed = read_config(kQwen2, "mlp_only_layers", "[1]");
  CHECK(mixed.has_shared_expert(0));
  CHECK_FALSE(mixed.has_shared_expert(1));
  CHECK(mixed.dense_width == 9);
  CHECK(read_config(kQwen2, "decoder_sparse_step", "2").moe ==
        std::vector<bool>{false, true, false});

  for (const char* key : {"shared_expert_intermediate_size", "moe_intermediate_size",
                          "num_key_value_heads", "num_experts"}) {
    CHECK_THAT(refused(without(kQwen2, key)), ContainsSubstring(key));
  }
  CHECK_THAT(refused(kQwen2, "shared_expert_intermediate_size", "0"),
             ContainsSubstring("shared_expert_intermediate_size"));
}

TEST_CASE("Qwen2-MoE: windows by layer", "[config]") {
  const Json on = changed(changed(kQwen2, "use_sliding_window", true), "sliding_window", 4);
  CHECK(read_config(kQwen2, "sliding_window", "4").windows == Windows{0, 0, 0});
  // transformers: every second layer, from the first, below max_window_layers.
  CHECK(read_config(on, "max_window_layers", "28").windows == Windows{4, 0, 4});
  CHECK(read_config(on, "max_window_layers", "2").windows == Windows{4, 0, 0});
  CHECK(read_config(on, "max_window_layers", "0").windows == Windows{0, 0, 0});
  CHECK_THAT(refused(on), ContainsSubstring("max_window_layers"));
  CHECK_THAT(refused(changed(without(on, "sliding_window"), "max_window_layers", 2)),
             ContainsSubstring("sliding_window"));
  CHECK_THAT(refused(changed(changed(on, "sliding_window", nullptr), "max_window_layers", 2)),
             ContainsSubstring("sliding_window"));
  // layer_types says it alone.
  const char* types = R"(["full_attention", "sliding_attention", "full_attention"])";
  CHECK(read_config(on, "layer_types", types).windows == Windows{0, 4, 0});
  CHECK_THAT(refused(kQwen2, "layer_types", types), ContainsSubstring("layer_types"));
  for (const char* wrong : {R"(["full_attention"])", "3", "[1, 2, 3]",
                            R"(["chunked_attention", "full_attention", "full_attention"])"}) {
    CHECK_THAT(refused(on, "layer_types", wrong), ContainsSubstring("layer_types"));
  }
}

TEST_CASE("Qwen2-MoE: tensors", "[config]") {
  const std::vector<std::string> all = tensors(changed(kQwen2, "mlp_only_layers", JsonArray{1}));
  for (const char* name :
       {"self_attn.q_proj.bias 8", "self_attn.k_proj.bias 4", "self_attn.v_proj.bias 4",
        "mlp.gate.weight 3x8", "mlp.experts.1.up_proj.weight 5x8",
        "mlp.shared_expert.gate_proj.weight 7x8", "mlp.shared_expert.up_proj.weight 7x8",
        "mlp.shared_expert.down_proj.weight 8x7", "mlp.shared_expert_gate.weight 1x8"}) {
    CHECK(contains(all, std::string("model.layers.2.") + name));
  }
  CHECK(contains(all, "model.layers.1.mlp.up_proj.weight 9x8"));
  CHECK_FALSE(contains(all, "model.layers.1.mlp.shared_expert_gate.weight 1x8"));
  CHECK_FALSE(contains(all, "model.layers.2.self_attn.o_proj.bias 8"));
}

TEST_CASE("families that are not supported are refused by name", "[config]") {
  for (const char* family : {"deepseek_v2", "deepseek_v3", "gpt_oss", "granitemoe", "qwen3_next"}) {
    const std::string message = refused(kOlmoe, "model_type", "\"" + std::string(family) + "\"");
    CHECK_THAT(message, ContainsSubstring(family));
    CHECK_THAT(message, ContainsSubstring("supported are qwen3_moe, olmoe, mixtral, qwen2_moe"));
  }
}
