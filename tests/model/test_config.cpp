// config.json of Qwen3-MoE: every switch honoured or refused, every number bounded.
#include "model_fixtures.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A config whose key has a value given as JSON text.
Json with(const std::string& key, const std::string& value) {
  return changed(small_config(), key, parse_json(value, "value"));
}

Json with_rope(const std::string& parameters) {
  return changed(changed(small_config(), "rope_theta", nullptr), "rope_parameters",
                 parse_json(parameters, "value"));
}

std::vector<std::string> names(const Json& config) {
  const ModelSpec spec = read_config(config);
  const Family& family = find_family(spec.family);
  const ParameterTable table = family.make_table(spec);
  CHECK(family.tensor_count(spec) == static_cast<int64_t>(table.tensors().size()));
  std::vector<std::string> out;
  for (const Tensor& tensor : table.tensors()) out.push_back(tensor.name);
  return out;
}

}  // namespace

TEST_CASE("config: sizes and switches are read", "[config]") {
  const ModelSpec spec = read_config(small_config());
  CHECK(spec.family == "qwen3_moe");
  CHECK(spec.vocabulary == 11);
  CHECK(spec.hidden == 6);
  CHECK(spec.layers == 3);
  CHECK(spec.heads == 4);
  CHECK(spec.kv_heads == 2);
  CHECK(spec.head_dim == 4);  // not hidden / heads
  CHECK(spec.norm_eps == 1e-6);
  CHECK(spec.max_positions == 64);
  CHECK(spec.rope_theta == 10000);
  CHECK(spec.experts == 3);
  CHECK(spec.experts_per_token == 2);
  CHECK(spec.expert_width == 5);
  CHECK(spec.dense_width == 7);
  CHECK(spec.moe == std::vector<bool>{true, true, false});
  CHECK(spec.qk_norm == QkNorm::head);
  // What an absent key means, as in transformers' class.
  CHECK_FALSE(spec.tied_head);
  CHECK_FALSE(spec.qkv_bias);
  CHECK_FALSE(spec.o_bias);
  CHECK_FALSE(spec.normalize_weights);
  CHECK(spec.aux_loss == 0.001);
  CHECK(spec.windows == std::vector<int64_t>{0, 0, 0});
  CHECK(spec.padding_id == -1);
  CHECK(spec.eos_ids.empty());
}

TEST_CASE("config: every switch has its effect", "[config]") {
  CHECK(read_config(with("norm_topk_prob", "true")).normalize_weights);
  CHECK(read_config(with("router_aux_loss_coef", "0.25")).aux_loss == 0.25);
  CHECK(read_config(with("tie_word_embeddings", "true")).tied_head);
  CHECK(read_config(with("attention_bias", "true")).qkv_bias);
  CHECK(read_config(with("attention_bias", "true")).o_bias);
  CHECK(read_config(with("rms_norm_eps", "1e-5")).norm_eps == 1e-5);
  CHECK(read_config(with("initializer_range", "0.1")).initializer_range == 0.1);
  CHECK(read_config(with("hidden_act", "\"swish\"")).hidden == 6);
  CHECK(read_config(with("attention_dropout", "0.0")).hidden == 6);

  CHECK(read_config(with("eos_token_id", "3")).eos_ids == std::vector<int64_t>{3});
  CHECK(read_config(with("eos_token_id", "[3, 4]")).eos_ids == std::vector<int64_t>{3, 4});
  CHECK(read_config(with("eos_token_id", "null")).eos_ids.empty());
  CHECK(read_config(with("pad_token_id", "2")).padding_id == 2);
  CHECK(read_config(with("pad_token_id", "-1")).padding_id == 10);  // torch counts from the end
  CHECK(read_config(with("pad_token_id", "null")).padding_id == -1);

  // A head's size: given, or hidden / heads.
  const Json derived = changed(without(small_config(), "head_dim"), "hidden_size", 8);
  CHECK(read_config(derived).head_dim == 2);
  CHECK(read_config(changed(derived, "head_dim", nullptr)).head_dim == 2);

  // The number of experts has two names.
  const Json local = changed(without(small_config(), "num_experts"), "num_local_experts", 3);
  CHECK(read_config(local).experts == 3);
  CHECK(read_config(changed(local, "num_experts", 3)).experts == 3);
  CHECK(read_config(changed(local, "num_experts", nullptr)).experts == 3);
}

TEST_CASE("config: which layers have experts", "[config]") {
  const auto moe = [](const std::string& step, const std::string& dense) {
    return read_config(changed(with("decoder_sparse_step", step), "mlp_only_layers",
                               parse_json(dense, "value")))
        .moe;
  };
  using Layers = std::vector<bool>;
  CHECK(moe("1", "null") == Layers{true, true, true});
  CHECK(moe("2", "[]") == Layers{false, true, false});
  CHECK(moe("3", "[]") == Layers{false, false, true});
  CHECK(moe("4", "[]") == Layers{false, false, false});
  CHECK(moe("1", "[0, 1, 1]") == Layers{false, false, true});
  CHECK(moe("2", "[1]") == Layers{false, false, false});
  CHECK(moe("1", "[-1, 3, 9223372036854775807, 18446744073709551615]") == Layers{true, true, true});
  // Dense layers need their width, expert layers do not.
  const Json no_width = without(small_config(), "intermediate_size");
  CHECK_THAT(refused(no_width), ContainsSubstring("intermediate_size is missing"));
  CHECK(read_config(changed(no_width, "mlp_only_layers", JsonArray{})).dense_width == 0);
}

TEST_CASE("config: the base of rotary positions, old and new style", "[config]") {
  CHECK(read_config(with_rope(R"({"rope_theta": 1000000, "rope_type": "default"})")).rope_theta ==
        1e6);
  CHECK(read_config(with_rope(R"({"rope_theta": 5e5})")).rope_theta == 5e5);
  CHECK(read_config(with_rope(R"({"rope_theta": 5e5, "type": "default"})")).rope_theta == 5e5);
  const Json both = changed(with_rope(R"({"rope_theta": 5e5})"), "rope_theta", 500000);
  CHECK(read_config(both).rope_theta == 5e5);
  CHECK(read_config(with("rope_scaling", "null")).rope_theta == 10000);
  CHECK(read_config(with("rope_scaling", R"({"rope_type": "default"})")).rope_theta == 10000);
  CHECK(read_config(with("rope_parameters", "{}")).rope_theta == 10000);
  CHECK(read_config(with("partial_rotary_factor", "1.0")).rope_theta == 10000);

  const Json none = without(small_config(), "rope_theta");
  for (const Json& config :
       {none, changed(none, "rope_theta", nullptr), with_rope("{}"),
        with_rope(R"({"rope_type": "default"})"), with_rope(R"({"rope_theta": null})"),
        changed(none, "rope_parameters", nullptr)}) {
    CHECK_THAT(refused(config), ContainsSubstring("rope_theta"));
    CHECK_THAT(refused(config), ContainsSubstring("never guessed"));
  }
  CHECK_THAT(refused(changed(both, "rope_theta", 10000.0)), ContainsSubstring("differs"));
  CHECK_THAT(refused(with("rope_scaling", R"({"rope_theta": 7})")), ContainsSubstring("differs"));
  for (const char* type : {"yarn", "linear", "dynamic", "llama3", "longrope", "mrope"}) {
    const std::string text = std::string(R"({"rope_theta": 1e4, "rope_type": ")") + type + "\"}";
    CHECK_THAT(refused(with_rope(text)), ContainsSubstring(type));
    CHECK_THAT(
        refused(with("rope_scaling", "{\"type\": \"" + std::string(type) + "\", \"factor\": 2}")),
        ContainsSubstring(type));
  }
  CHECK_THAT(refused(with("rope_parameters", "[]")), ContainsSubstring("rope_parameters"));
  CHECK_THAT(refused(with_rope(R"({"rope_theta": 1e4, "full_attention": {"rope_theta": 1e6}})")),
             ContainsSubstring("full_attention"));
  CHECK_THAT(refused(with("partial_rotary_factor", "0.5")),
             ContainsSubstring("partial_rotary_factor"));
  CHECK_THAT(refused(with_rope(R"({"rope_theta": 1e4, "partial_rotary_factor": 0.5})")),
             ContainsSubstring("partial_rotary_factor"));
  for (const char* theta : {"0", "-1", "\"10000\"", "true", "[1]", "1e300"}) {
    CHECK_THAT(refused(with("rope_theta", theta)), ContainsSubstring("rope_theta"));
  }
}

TEST_CASE("config: the window counts only with use_sliding_window", "[config]") {
  CHECK(read_config(with("sliding_window", "16")).windows[0] == 0);
  const Json on = with("use_sliding_window", "true");
  CHECK_THAT(refused(on), ContainsSubstring("sliding_window is missing"));
  CHECK(read_config(changed(on, "sliding_window", nullptr)).windows[0] == 0);
  CHECK(read_config(changed(on, "sliding_window", 16)).windows[0] == 16);
  CHECK(
      read_config(changed(changed(on, "sliding_window", 16), "max_window_layers", 1)).windows[0] ==
      16);
  CHECK_THAT(refused(changed(on, "sliding_window", 0)), ContainsSubstring("sliding_window"));
  CHECK_THAT(refused(changed(on, "sliding_window", "16")), ContainsSubstring("sliding_window"));
  const std::string full = R"(["full_attention", "full_attention", "full_attention"])";
  CHECK(read_config(with("layer_types", full)).windows[0] == 0);
  for (const char* types : {R"(["full_attention"])", R"("full_attention")", "[5, 5, 5]"}) {
    CHECK_THAT(refused(with("layer_types", types)), ContainsSubstring("layer_types"));
  }
  CHECK_THAT(
      refused(changed(changed(on, "sliding_window", 16), "layer_types", parse_json(full, "value"))),
      ContainsSubstring("layer_types"));
}

TEST_CASE("config: what is missing is never guessed", "[config]") {
  for (const char* key :
       {"model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "rms_norm_eps", "max_position_embeddings", "num_experts",
        "num_experts_per_tok", "moe_intermediate_size", "intermediate_size", "rope_theta"}) {
    INFO(key);
    CHECK_THAT(refused(without(small_config(), key)), ContainsSubstring(key));
    CHECK_THAT(refused(changed(small_config(), key, nullptr)), ContainsSubstring(key));
  }
  for (const int hidden : {7, 4 * 4097}) {  // no whole number, above the limit
    CHECK_THAT(refused(changed(without(small_config(), "head_dim"), "hidden_size", hidden)),
               ContainsSubstring("head_dim"));
  }
  CHECK_THAT(refused(with("model_type", "\"mamba\"")),
             ContainsSubstring("'mamba' is not supported; supported are qwen3_moe"));
  CHECK_THAT(refused(JsonArray{}), ContainsSubstring("expected a JSON object"));
}

TEST_CASE("config: every number has its type and limits", "[config]") {
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "head_dim", "max_position_embeddings",
                          "num_experts", "num_experts_per_tok", "moe_intermediate_size",
                          "intermediate_size", "decoder_sparse_step"}) {
    for (const char* value : {"0", "-1", "2147483649", "9223372036854775807", "9223372036854775808",
                              "18446744073709551615", "1.0", "\"4\"", "true", "[4]", "{}"}) {
      INFO(key << " = " << value);
      const std::string message = refused(with(key, value));
      CHECK_THAT(message, ContainsSubstring(std::string("config.json: ") + key));
      CHECK_THAT(message, ContainsSubstring("expected an integer from "));
    }
  }
  for (const char* value : {"0", "-1e-6", "2", "\"NaN\"", "true", "null"}) {
    CHECK_THAT(refused(with("rms_norm_eps", value)), ContainsSubstring("rms_norm_eps"));
  }
  CHECK_THROWS_AS(parse_json(R"({"rms_norm_eps": NaN})", "config.json"), Error);
  CHECK_THAT(refused(with("num_key_value_heads", "3")),
             ContainsSubstring("does not divide num_attention_heads, 4"));
  CHECK_THAT(refused(with("num_experts_per_tok", "4")), ContainsSubstring("more than"));
  CHECK_THAT(refused(with("head_dim", "5")), ContainsSubstring("even"));
  CHECK_THAT(refused(with("pad_token_id", "11")), ContainsSubstring("pad_token_id"));
  CHECK_THAT(refused(with("pad_token_id", "-12")), ContainsSubstring("pad_token_id"));
  CHECK_THAT(refused(with("mlp_only_layers", "[1.0]")), ContainsSubstring("mlp_only_layers"));
  CHECK_THAT(refused(with("mlp_only_layers", "1")), ContainsSubstring("mlp_only_layers"));
  CHECK_THAT(refused(with("eos_token_id", "\"x\"")), ContainsSubstring("eos_token_id"));
  CHECK_THAT(refused(with("router_aux_loss_coef", "-1")), ContainsSubstring("router_aux_loss"));
  for (const char* key :
       {"attention_bias", "norm_topk_prob", "tie_word_embeddings", "use_sliding_window"}) {
    CHECK_THAT(refused(with(key, "1")), ContainsSubstring(key));
  }
  // Sizes that are fine alone and too many together.
  Json many = changed(with("num_hidden_layers", "4096"), "num_experts", 128);
  CHECK_THAT(refused(many), ContainsSubstring("262144 experts"));
  Json huge = changed(with("hidden_size", "1048576"), "vocab_size", 2147483647);
  CHECK_THAT(refused(huge), ContainsSubstring("2^50 parameters"));
}

TEST_CASE("config: what transformers honours and this version does not is refused", "[config]") {
  const std::vector<std::pair<std::string, std::string>> refusals = {
      {"hidden_act", "\"gelu\""},   {"hidden_act", "1"},
      {"hidden_act", "null"},       {"hidden_act", "[]"},
      {"attention_dropout", "0.1"}, {"quantization_config", R"({"quant_method": "fp8"})"},
      {"compression_config", "{}"}, {"per_layer_config", R"({"0": {"num_experts": 2}})"},
      {"is_causal", "false"},       {"num_local_experts", "4"},
  };
  for (const auto& [key, value] : refusals) {
    INFO(key);
    CHECK_THAT(refused(with(key, value)), ContainsSubstring(key));
  }
  // Keys that have no effect on this family in transformers.
  const std::vector<std::pair<std::string, std::string>> inert = {
      {"use_cache", "false"},       {"transformers_version", "\"5.0\""},
      {"max_window_layers", "28"},  {"architectures", "[\"Qwen3MoeForCausalLM\"]"},
      {"bos_token_id", "1"},        {"quantization_config", "null"},
      {"shared_expert_width", "3"}, {"router_jitter_noise", "0.1"},
  };
  for (const auto& [key, value] : inert) {
    INFO(key);
    CHECK(refused(with(key, value)).empty());
  }
}

TEST_CASE("config: the storage type", "[config]") {
  const auto type = [](const std::string& text) {
    return config_dtype(parse_json(text, "value"), "config.json");
  };
  CHECK(type("{}") == std::nullopt);
  CHECK(type(R"({"torch_dtype": "bfloat16"})") == DType::bf16);
  CHECK(type(R"({"torch_dtype": "torch.float16"})") == DType::f16);
  CHECK(type(R"({"dtype": "float32", "torch_dtype": "bfloat16"})") == DType::f32);
  CHECK_THROWS_AS(type(R"({"dtype": "float8_e4m3fn"})"), Error);
  CHECK_THROWS_AS(type(R"({"dtype": 16})"), Error);
}

TEST_CASE("config: the table follows the published layout", "[config]") {
  const std::vector<std::string> plain = names(small_config());
  CHECK(plain.front() == "model.embed_tokens.weight");
  CHECK(plain[1] == "model.layers.0.self_attn.q_proj.weight");
  CHECK(plain.back() == "model.norm.weight");
  CHECK(contains(plain, "lm_head.weight"));
  CHECK(contains(plain, "model.layers.1.mlp.experts.2.down_proj.weight"));
  CHECK(contains(plain, "model.layers.2.mlp.gate_proj.weight"));
  CHECK_FALSE(contains(plain, "model.layers.2.mlp.gate.weight"));
  CHECK_FALSE(contains(plain, "model.layers.0.self_attn.o_proj.bias"));
  CHECK_FALSE(contains(names(with("tie_word_embeddings", "true")), "lm_head.weight"));
  const std::vector<std::string> biased = names(with("attention_bias", "true"));
  for (const char* bias : {"q", "k", "v", "o"}) {
    CHECK(contains(biased, std::string("model.layers.0.self_attn.") + bias + "_proj.bias"));
  }
  CHECK(biased.size() == plain.size() + 12);

  const Family& family = find_family("qwen3_moe");
  const ParameterTable table = family.make_table(read_config(small_config()));
  for (const Tensor& tensor : table.tensors()) CHECK(tensor.decayed == !tensor.vector);
  const Tensor& q = table.tensor(*table.find("model.layers.0.self_attn.q_proj.weight"));
  CHECK(q.rows == 16);
  CHECK(q.cols == 6);
  const Tensor& down = table.tensor(*table.find("model.layers.0.mlp.experts.0.down_proj.weight"));
  CHECK(down.rows == 6);
  CHECK(down.cols == 5);
}
