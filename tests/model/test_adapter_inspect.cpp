// What inspect shows of adapter directories.
#include "adapter_fixture.h"
#include "peft/inspect.h"
#include "support/test_paths.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

std::string golden(const std::string& name) {
  return test_data() + "/adapters/" + name + "/adapter";
}

/// adapter_config.json of these members, and pairs of one value each with these types.
std::string make_pairs(const TemporaryDirectory& directory, const std::string& members,
                       const std::vector<std::pair<std::string, std::string>>& types,
                       const Notes& notes = {}) {
  const std::string path = directory / "adapter";
  make_directory(path);
  write_text(path + kAdapterConfigFile, R"({"peft_type": "LORA", )" + members + "}");
  std::vector<StoredTensor> tensors;
  for (const auto& [module, type] : types) {
    for (const char* half : {".lora_A.weight", ".lora_B.weight"}) {
      tensors.push_back({{"base_model.model." + module + half, type, {1, 1}, 0, 0},
                         std::string(type == "F32" ? 4 : 2, '\0')});
    }
  }
  write_text(path + kAdapterWeightsFile, "");
  store_noted(path, tensors, notes);
  return path;
}

}  // namespace

TEST_CASE("inspect of an adapter: what PEFT made", "[adapter]") {
  const AdapterInspection fused = inspect_adapter(golden("fused"));
  CHECK(fused.layout == "fused");
  CHECK(fused.rank == 2);
  CHECK(fused.scale == 3);
  CHECK_FALSE(fused.base_digest);
  const std::string text = inspection_text(fused);
  CHECK_THAT(text, StartsWith("adapter (PEFT, LoRA): rank 2, alpha 6, scale 3; experts fused\n"
                              "base base, digest not noted\n"
                              "target_modules shared_expert.up_proj, q_proj, o_proj\n"
                              "target_parameters mlp.experts.gate_up_proj, mlp.experts.down_proj\n"
                              "rank_pattern o_proj: 1\n"
                              "alpha_pattern mlp.experts.down_proj: 5\n\ngroup "));
  const Json json = inspection_json(fused);
  CHECK(json.find("base_digest")->is_null());
  CHECK(json.find("expert_layout")->as_string() == "fused");
  CHECK(json.find("modules_to_save")->is_null());

  const AdapterInspection head = inspect_adapter(golden("head"));
  CHECK(head.layout == "none");
  CHECK_THAT(inspection_text(head),
             StartsWith("adapter (PEFT, LoRA): rank 2, alpha 8, scale 4; experts not adapted\n"));
  REQUIRE(head.groups.size() == 1);
  CHECK(head.groups[0].name == "head");
  CHECK(head.groups[0].parameters == 13 * 8 + 2 * 8 + 13 * 2);
}

TEST_CASE("inspect of an adapter: settings that are not there have PEFT's defaults", "[adapter]") {
  const TemporaryDirectory directory;
  const AdapterInspection plain =
      inspect_adapter(make_pairs(directory, R"("target_parameters": ["x"])", {{"lm_head", "F32"}}));
  CHECK(plain.rank == 8);
  CHECK(plain.alpha == 8);
  CHECK(plain.scale == 1);
  CHECK(plain.target_modules.is_null());
  CHECK_THAT(inspection_text(plain),
             StartsWith("adapter (PEFT, LoRA): rank 8, alpha 8, scale 1; experts not adapted\n"
                        "base not named, digest not noted\ntarget_parameters x\n\n"));
}

TEST_CASE("inspect of an adapter: scale, patterns, notes, groups and types", "[adapter]") {
  const TemporaryDirectory directory;
  const std::string digest(32, 'a');
  const AdapterInspection seen = inspect_adapter(
      make_pairs(directory,
                 R"("r": 4, "lora_alpha": 3, "use_rslora": true, "target_modules": ".*_proj",
         "rank_pattern": {"q_proj": 1, "gate": 2},
         "base_model_name_or_path": "org/name")",
                 {{"model.layers.0.self_attn.q_proj", "F32"},
                  {"model.layers.0.self_attn.k_proj", "BF16"},
                  {"model.layers.0.self_attn.v_proj", "F16"},
                  {"model.layers.0.mlp.gate", "F32"},
                  {"model.layers.0.mlp.experts.1.w1", "F32"},
                  {"model.layers.0.conv", "F32"}},
                 {{"hearth.base", digest}, {"hearth.ranks", R"({"a": 0, "b": 2, "c": 0})"}}));
  CHECK(seen.layout == "per-expert");
  CHECK(seen.without_pair == 2);
  const std::string text = inspection_text(seen);
  CHECK_THAT(text, StartsWith("adapter (PEFT, LoRA): rank 4, alpha 3 (rsLoRA), scale 1.5; experts "
                              "per-expert\nbase org/name, digest " +
                              digest +
                              "\ntarget_modules .*_proj\nrank_pattern q_proj: 1, gate: 2\n"
                              "2 matrices have no pair: zeros in the file\n\n"));
  CHECK(inspection_json(seen).find("base_digest")->as_string() == digest);
  CHECK(inspection_json(seen).find("rslora")->as_bool());
  const std::vector<std::pair<std::string, std::string>> groups = {
      {"attention", "BF16, F16, F32"}, {"router", "F32"}, {"experts", "F32"}, {"other", "F32"}};
  REQUIRE(seen.groups.size() == groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    CHECK(seen.groups[i].name == groups[i].first);
    CHECK(seen.groups[i].types == groups[i].second);
    CHECK(seen.groups[i].tensors == (i == 0 ? 6 : 2));
  }
  CHECK(seen.groups[0].bytes == 2 * (4 + 2 + 2));
}
