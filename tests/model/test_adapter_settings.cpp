// What settings of adapter_config.json that PEFT wrote on transformers 4 mean.
#include "adapter_fixture.h"
#include "peft/write.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("adapters: settings of transformers 4 mean its modules", "[adapter]") {
  const TemporaryDirectory directory;
  Json config = changed(small_config(), "model_type", "qwen2_moe");
  config = without(changed(config, "shared_expert_intermediate_size", 4), "head_dim");
  make_checkpoint(changed(config, "hidden_size", 8), directory / "base");
  const Checkpoint base(directory / "base");
  AdapterOptions options;
  options.rank = options.expert_rank = 4;
  options.alpha = 8;
  options.targets = {"attention", "experts", "shared-experts", "dense"};
  const AdapterTable adapters = make_adapters(base, options);
  write_adapter(adapters.table, base, {}, directory / "out");
  const std::string path = (directory / "out") + "/adapter_config.json";
  const auto with = [&](const std::string& members) {
    write_text(path, R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, )" + members + "}");
    return distance(adapters.table, read_adapter(directory / "out", base).table);
  };
  const std::string list = R"("target_modules": ["q_proj", "k_proj", "v_proj", "o_proj",
    "gate_proj", "up_proj", "down_proj"])";
  CHECK(with(list) < 1e-6);
  CHECK(with(R"x("target_modules": ".*(_proj|[qkvo]_proj)")x") < 1e-6);
  // Twice the scale in one module, and rank-stabilised: alpha / sqrt(4) instead of alpha / 4.
  CHECK(with(list + R"(, "alpha_pattern": {"experts.1.up_proj": 16})") > 0.1);
  write_text(path,
             R"({"peft_type": "LORA", "r": 4, "lora_alpha": 4, "use_rslora": true, )" + list + "}");
  CHECK(distance(adapters.table, read_adapter(directory / "out", base).table) < 1e-6);
  for (const char* other : {R"("target_modules": ["q_proj", "gate_proj", "up_proj", "down_proj"])",
                            R"("target_modules": "all-linear", "exclude_modules": ["k_proj"])",
                            R"("target_modules": ".*", "layers_to_transform": [0])"}) {
    INFO(other);
    CHECK_THAT(error_of([&] { with(other); }), ContainsSubstring("target_modules"));
  }
}
