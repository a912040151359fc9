// config.json and generation_config.json.
#include <catch2/catch_test_macros.hpp>

#include "hostile/hostile.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kConfigFile = "model/config.json";

Case key(const std::string& name, const std::string& raw, int code = 3) {
  return {name + " = " + (raw.empty() ? "absent" : raw.substr(0, 60)),
          [=](const Place& p) { p.write(kConfigFile, config_with(name, raw)); },
          code == 0 ? std::vector<std::string>{} : std::vector<std::string>{"config.json", name},
          code};
}

Case text(const std::string& name, const std::string& content, std::vector<std::string> says) {
  says.push_back("config.json");
  return {name, [=](const Place& p) { p.write(kConfigFile, content); }, says};
}

}  // namespace

TEST_CASE("hostile: sizes in config.json") {
  std::vector<Case> table;
  for (const char* name : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                           "num_key_value_heads", "head_dim", "num_experts", "num_experts_per_tok",
                           "moe_intermediate_size", "max_position_embeddings"}) {
    for (const char* raw :
         {"0", "-1", "2147483648", "9223372036854775808", "1.5", "\"8\"", "true", "[8]"}) {
      table.push_back(key(name, raw));
    }
  }
  for (const char* name :
       {"model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "num_experts", "num_experts_per_tok", "moe_intermediate_size",
        "rms_norm_eps", "rope_theta", "max_position_embeddings"}) {
    table.push_back(key(name, ""));
  }
  run_table("config.json, sizes", table, eval_words());
}

TEST_CASE("hostile: other values of config.json") {
  run_table(
      "config.json, values",
      {
          key("unknown_key_of_tomorrow", "1", 0),
          key("pad_token_id", "null", 0),
          key("rms_norm_eps", "0"),
          key("rms_norm_eps", "-1e-6"),
          key("rms_norm_eps", "\"1e-6\""),
          key("rope_theta", "0"),
          key("rope_theta", "-10000"),
          key("rope_theta", "null"),
          key("num_key_value_heads", "3"),
          key("head_dim", "7"),
          key("num_experts_per_tok", "5"),
          key("norm_topk_prob", "1"),
          key("norm_topk_prob", "\"true\""),
          key("router_aux_loss_coef", "-1"),
          key("tie_word_embeddings", "0"),
          key("hidden_act", "\"gelu\""),
          key("hidden_act", "1"),
          key("hidden_act", "null"),
          key("attention_dropout", "0.1"),
          key("rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 4.0}"),
          key("rope_scaling", "{\"type\": \"linear\", \"factor\": 2.0}"),
          key("rope_scaling", "[]"),
          key("quantization_config", "{\"quant_method\": \"fp8\"}"),
          key("decoder_sparse_step", "0"),
          key("mlp_only_layers", "[0.5]"),
          key("mlp_only_layers", "{}"),
          {"a dense layer without a size",
           [](const Place& p) { p.write(kConfigFile, config_with("mlp_only_layers", "[1]")); },
           {"config.json", "intermediate_size"}},
          {"heads that the weights do not have",
           [](const Place& p) { p.write(kConfigFile, config_with("num_attention_heads", "3")); },
           {"q_proj", "config.json"}},
          key("torch_dtype", "\"int4\""),
          key("torch_dtype", "4"),
          key("eos_token_id", "\"2\""),
          key("eos_token_id", "[1, 9223372036854775808]"),
          key("pad_token_id", "300"),
          key("model_type", "\"llama\""),
          key("model_type", "\"\""),
          key("model_type", "7"),
          key("model_type", "[\"qwen3_moe\"]"),
          {"model_type of 3,000,000 letters",
           [](const Place& p) {
             p.write(kConfigFile,
                     config_with("model_type", "\"" + std::string(3'000'000, 'q') + "\""));
           },
           {"config.json", "qqq"}},
          {"a model_type that writes to the terminal",
           [](const Place& p) {
             p.write(kConfigFile, config_with("model_type", "\"\\u001b]0;owned\\u0007\\r\\n\""));
           },
           {"config.json", "owned"}},
          {"hidden_act of 100,000 letters",
           [](const Place& p) {
             p.write(kConfigFile,
                     config_with("hidden_act", "\"" + std::string(100'000, 'q') + "\""));
           },
           {"config.json", "hidden_act"}},
          {"2^50 parameters of tensors that are not there",
           [](const Place& p) {
             RawConfig config = good_config();
             for (auto& [name, raw] : config) {
               if (name == "num_hidden_layers") raw = "4096";
               if (name == "num_experts") raw = "64";
             }
             p.write(kConfigFile, config_text(config));
           },
           {"config.json"}},
      },
      eval_words());
}

TEST_CASE("hostile: texts of config.json") {
  const std::string good = config_text(good_config());
  const auto inside = [&](std::string more) {
    return good.substr(0, good.rfind('}')) + std::move(more) + "}";
  };
  std::string deep(100'000, '[');
  run_table(
      "config.json, text",
      {
          text("no bytes", "", {}),
          text("no JSON", "model_type: qwen3_moe\n", {"line 1"}),
          text("a list", "[]", {"object"}),
          text("null", "null", {"object"}),
          text("cut off", good.substr(0, good.size() / 2), {"line"}),
          text("a comma too many", inside(","), {"line"}),
          text("a comment", inside("// seen on the Hub\n"), {"line"}),
          text("text behind it", good + "x", {"line"}),
          text("two documents", good + good, {"line"}),
          text("a byte order mark", "\xef\xbb\xbf" + good, {"byte order"}),
          text("UTF-16", std::string("\xff\xfe{\0}\0", 6), {}),
          text("no UTF-8", inside(", \"a\": \"\xc3\x28\""), {"UTF-8"}),
          text("a NUL byte", good + std::string(1, '\0'), {"NUL"}),
          text("a NUL byte in a string", inside(std::string(", \"a\": \"\0\"", 9)), {"NUL"}),
          text("a lone surrogate", inside(", \"a\": \"\\ud800\""), {"line"}),
          text("a control character", inside(", \"a\": \"\x01\""), {"line"}),
          text("NaN", config_with("rms_norm_eps", "NaN"), {"line"}),
          text("Infinity", config_with("rope_theta", "Infinity"), {"line"}),
          text("-Infinity", config_with("rope_theta", "-Infinity"), {"line"}),
          text("1e400", config_with("rope_theta", "1e400"), {"line", "too large"}),
          text("2^64", config_with("vocab_size", "18446744073709551616"),
               {"vocab_size", "18446744073709551616"}),
          text("hexadecimal", config_with("vocab_size", "0x100"), {"line"}),
          text("a leading zero", config_with("vocab_size", "0300"), {"line"}),
          text("a plus", config_with("vocab_size", "+300"), {"line"}),
          text("True", config_with("norm_topk_prob", "True"), {"line"}),
          text("single quotes", "{'model_type': 'qwen3_moe'}", {"line"}),
          text("a key twice", inside(", \"vocab_size\": 301"), {"duplicate", "vocab_size"}),
          text("a key twice, spelt with an escape", inside(", \"\\u0076ocab_size\": 301"),
               {"duplicate", "vocab_size"}),
          text("a key twice inside",
               config_with("rope_parameters", "{\"rope_theta\": 1e4, \"rope_theta\": 1e6}"),
               {"duplicate", "rope_theta"}),
          text("100,000 brackets", deep, {"nested"}),
          text("1,000 brackets in a key", config_with("x", std::string(1000, '[')), {"nested"}),
          text("1,900,000 numbers",
               "[0" +
                   [] {
                     std::string more;
                     for (int i = 0; i < 1'900'000; ++i) more += ",0";
                     return more;
                   }() +
                   "]",
               {}),
          text("a number of 1,000,000 digits",
               config_with("vocab_size", std::string(1'000'000, '9')), {}),
          {"100 MB",
           [](const Place& p) { p.sparse(kConfigFile, "{\"a\": \"", 100'000'000); },
           {"config.json", "100000000 bytes"}},
      },
      eval_words());
}

TEST_CASE("hostile: config.json that is something else") {
  run_table("config.json, kind", not_a_file(kConfigFile), eval_words());
  run_table("config.json, absent",
            {{"none", [](const Place& p) { p.remove(kConfigFile); }, {"config.json"}}},
            eval_words());
}

TEST_CASE("hostile: generation_config.json") {
  const char* file = "model/generation_config.json";
  run_table("generation_config.json, kind", not_a_file(file), eval_words());
  const auto with = [&](std::string content) {
    return [=](const Place& p) { p.write(file, content); };
  };
  run_table("generation_config.json",
            {{"good", with("{\"eos_token_id\": [1, 2]}"), {}, 0},
             {"no JSON", with("{"), {"generation_config.json"}},
             {"an end token that is text",
              with("{\"eos_token_id\": \"</s>\"}"),
              {"generation_config.json", "eos_token_id"}}},
            eval_words());
}
