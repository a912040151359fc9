// The program on a small random model of each family: made, inspected, decoded with and without the
// cache, trained with frozen tensors, and written under the published names.
#include <catch2/catch_test_macros.hpp>

#include "base/file_ops.h"
#include "base/json.h"
#include "support/program.h"
#include "support/test_paths.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct FamilyCase {
  std::string family, more, experts, trained;  // globs and names of published tensors
};

const FamilyCase kCases[] = {
    {"qwen3_moe", R"("num_experts": 4, "moe_intermediate_size": 16, "norm_topk_prob": true)",
     "*.mlp.experts.*", "model.layers.1.self_attn.q_norm.weight"},
    {"olmoe", R"("num_experts": 4, "intermediate_size": 16, "clip_qkv": 0.5)", "*.mlp.experts.*",
     "model.layers.1.self_attn.k_norm.weight"},
    {"mixtral", R"("num_local_experts": 4, "intermediate_size": 16, "sliding_window": 4)",
     "*.block_sparse_moe.experts.*", "model.layers.0.block_sparse_moe.gate.weight"},
    {"qwen2_moe", R"("num_experts": 4, "moe_intermediate_size": 16, "max_window_layers": 1,
      "shared_expert_intermediate_size": 24, "use_sliding_window": true, "sliding_window": 3)",
     "*.mlp.experts.*", "model.layers.1.mlp.shared_expert_gate.weight"},
};

std::string run(const std::vector<std::string>& words) {
  const ProgramResult result = run_program(test_binary(), words);
  INFO(words[0] << ": " << result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

void write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text.data(), text.size());
  file.close();
}

JsonObject digests(const std::string& model) {
  const Json json = parse_json(run({"inspect", model, "--digest", "--json"}), "inspect");
  return json.find("digest")->as_object();
}

}  // namespace

TEST_CASE("every family is made, read, decoded, trained and written") {
  for (const FamilyCase& c : kCases) {
    DYNAMIC_SECTION(c.family) {
      const TemporaryDirectory d;
      const std::string model = d / "model";
      write_text(d / "config.json", "{\"model_type\": \"" + c.family + R"(", "vocab_size": 300,
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_experts_per_tok": 2, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "initializer_range": 0.2, )" +
                                        c.more + "}");
      write_text(d / "rows.jsonl", "{\"text\": \"some words to learn\"}\n");
      run({"init", "--config", d / "config.json", "--out", model});
      const Json seen = parse_json(run({"inspect", model, "--json"}), "inspect");
      CHECK(seen.find("family")->as_string() == c.family);

      const auto decoded = [&](const char* cache) {
        return run({"generate", "--model", model, "--prompt", "words", "--max-new-tokens", "12",
                    "--temperature", "0", "--kv-cache", cache});
      };
      CHECK(decoded("on") == decoded("off"));

      run({"train", "--model", model, "--data", d / "rows.jsonl", "--out", d / "run", "--steps",
           "2", "--seq-len", "32", "--lr", "1e-2", "--warmup", "0", "--freeze", c.experts,
           "--quiet"});
      const JsonObject before = digests(model), after = digests(d / "run/model");
      REQUIRE(before.size() == after.size());
      for (size_t i = 0; i < before.size(); ++i) {
        INFO(before[i].first);
        CHECK(before[i].first == after[i].first);
        const bool equal = before[i].second.as_string() == after[i].second.as_string();
        if (before[i].first.find(".experts.") != std::string::npos) CHECK(equal);
        if (before[i].first == c.trained) CHECK_FALSE(equal);
      }
    }
  }
}
