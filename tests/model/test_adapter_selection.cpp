// What the settings of adapter_config.json select. Expected of names in transformers 5 is what PEFT
// 0.21.2 adapts of such a model of transformers 5.23; of those in transformers 4 what its rule for
// names takes.
#include <set>

#include "adapter_fixture.h"
#include "peft/config.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using Modules = std::set<std::string>;
using enum AdapterNames;

/// Three layers, the last dense; Qwen2-MoE with shared experts.
Json selection_config(const std::string& family) {
  Json config = changed(small_config(), "model_type", family);
  if (family == "qwen3_moe") return config;
  config = without(changed(config, "shared_expert_intermediate_size", 4), "head_dim");
  return changed(config, "hidden_size", 8);
}

AdapterConfig settings(const std::string& members) {
  return {parse_json(R"({"peft_type": "LORA", )" + members + "}", "settings"), "settings"};
}

std::string refusal_of(const std::string& members) {
  return error_of([&] { settings(members); });
}

/// Modules, and of experts in transformers 5 parameters, without "model.".
Modules selected(const std::string& family, const std::string& members,
                 AdapterNames names = transformers_5) {
  const Family& of = family_of(selection_config(family), "config.json");
  const auto modules =
      adapter_modules(of.make_table(of.read_config(selection_config(family), "config.json")));
  const auto taken = settings(members).selected(modules, names, peft_moves_targets(of));
  Modules out;
  for (size_t i = 0; i < modules.size(); ++i) {
    if (!taken[i]) continue;
    std::string name = names == transformers_5 ? modules[i].now : modules[i].name;
    if (name.starts_with("model.")) name = name.substr(6);
    out.insert(name);
  }
  return out;
}

/// These of each of the layers.
Modules of_layers(const std::vector<int>& layers, const std::vector<std::string>& names) {
  Modules out;
  for (const int layer : layers) {
    for (const std::string& name : names)
      out.insert("layers." + std::to_string(layer) + "." + name);
  }
  return out;
}

Modules all_of(std::initializer_list<Modules> parts) {
  Modules out;
  for (const Modules& part : parts) out.insert(part.begin(), part.end());
  return out;
}

const std::string kQuery = "self_attn.q_proj", kKey = "self_attn.k_proj";
const std::string kValue = "self_attn.v_proj", kOutput = "self_attn.o_proj";
const Modules kHead = {"lm_head"};
const Modules kGateUpParts = of_layers({0, 1}, {"mlp.experts.gate_up_proj"});
const Modules kDownParts = of_layers({0, 1}, {"mlp.experts.down_proj"});
const Modules kRouters = of_layers({0, 1}, {"mlp.gate"});

}  // namespace

TEST_CASE("adapter settings: layers count where a name is the end of a module's", "[adapter]") {
  const std::string two = R"("target_modules": ["q_proj", "lm_head"])";
  const auto of = [&](const std::string& members) { return selected("qwen3_moe", two + members); };
  const Modules all = all_of({of_layers({0, 1, 2}, {kQuery}), kHead});
  const Modules one = all_of({of_layers({1}, {kQuery}), kHead});  // the head is named as a whole
  CHECK(of("") == all);
  CHECK(of(R"(, "layers_to_transform": [])") == all);
  CHECK(of(R"(, "layers_to_transform": null, "layers_pattern": "")") == all);
  CHECK(of(R"(, "layers_to_transform": 1)") == one);
  CHECK(of(R"(, "layers_to_transform": [0, 2])") == all_of({of_layers({0, 2}, {kQuery}), kHead}));
  for (const char* pattern : {"null", R"("")", "[]", R"("layers")", R"(["layers"])"}) {
    INFO(pattern);
    CHECK(of(R"(, "layers_to_transform": [1, 7], "layers_pattern": )" + std::string(pattern)) ==
          one);
  }
  CHECK(of(R"(, "layers_to_transform": [1], "exclude_modules": ["lm_head"])") ==
        of_layers({1}, {kQuery}));
  CHECK(selected("qwen3_moe", R"("layers_to_transform": [0], "target_modules":
      ["model.layers.1.self_attn.q_proj", "self_attn.v_proj"])") ==
        all_of({of_layers({1}, {kQuery}), of_layers({0}, {kValue})}));
  // Experts become parameters of all layers.
  CHECK(selected("qwen3_moe", R"("layers_to_transform": [0], "target_modules":
      ["q_proj", "gate_proj", "up_proj", "down_proj"])") ==
        all_of({of_layers({0}, {kQuery}), kGateUpParts, kDownParts}));
  CHECK(selected("qwen2_moe", R"("layers_to_transform": 2, "target_modules":
      ["q_proj", "down_proj"])") == of_layers({2}, {kQuery, "mlp.down_proj"}));
  // In transformers 4 the number of a layer is meant, not that of an expert.
  CHECK(
      selected("qwen3_moe", R"("layers_to_transform": 1, "target_modules": ["up_proj"])",
               transformers_4) ==
      of_layers({1}, {"mlp.experts.0.up_proj", "mlp.experts.1.up_proj", "mlp.experts.2.up_proj"}));
}

TEST_CASE("adapter settings: layers in a form that PEFT does not take are refused", "[adapter]") {
  const std::string list = R"("target_modules": ["q_proj"], )";
  for (const char* value : {"false", "true", "{}", R"("1")", "[true]", "1.5", "[[1]]"}) {
    INFO(value);
    CHECK_THAT(refusal_of(list + R"("layers_to_transform": )" + value),
               ContainsSubstring("expected layer numbers"));
  }
  for (const char* value :
       {R"("h")", R"(["h"])", R"(["layers", "h"])", "3", "[3]", "{}", "false", R"([""])"}) {
    INFO(value);
    CHECK_THAT(refusal_of(list + R"("layers_to_transform": 1, "layers_pattern": )" + value),
               ContainsSubstring("expected \"layers\""));
  }
  for (const char* targets : {R"("all-linear")", R"(".*\\.q_proj")"}) {
    INFO(targets);
    const std::string text = R"("target_modules": )" + std::string(targets);
    CHECK_THAT(refusal_of(text + R"(, "layers_to_transform": [0])"),
               ContainsSubstring("only with a list of target_modules"));
    CHECK(refusal_of(text + R"(, "layers_to_transform": null)").empty());
  }
}

TEST_CASE("adapter settings: a pattern", "[adapter]") {
  const auto pattern = [](const std::string& family, const std::string& text) {
    return selected(family, R"("target_modules": )" + Json(text).dump());
  };
  // PEFT reduces it to the leaf names that it matches, so layers are lost.
  const std::string moved = "qwen3_moe";
  const Modules queries = of_layers({0, 1, 2}, {kQuery});
  CHECK(pattern(moved, ".*\\.q_proj") == queries);
  CHECK(pattern(moved, ".*layers\\.1.*\\.q_proj") == queries);
  CHECK(pattern(moved, ".*\\.experts\\.down_proj") == kDownParts);
  CHECK(pattern(moved, ".*\\.2\\.mlp\\.down_proj") == kDownParts);
  CHECK(pattern(moved, ".*\\.experts\\.(gate|up)_proj") == kGateUpParts);
  CHECK(pattern(moved, ".*\\.experts\\.gate_up_proj").empty());
  CHECK(pattern(moved, ".*\\.mlp\\.gate") == kRouters);
  CHECK(pattern(moved, "q_proj").empty());
  CHECK(pattern("qwen2_moe", ".*layers\\.1.*\\.(q|down)_proj") ==
        of_layers({1}, {kQuery, "mlp.shared_expert.down_proj"}));
  CHECK(pattern("qwen2_moe", ".*\\.(q|down)_proj") ==
        all_of({queries, of_layers({0, 1}, {"mlp.shared_expert.down_proj"}),
                of_layers({2}, {"mlp.down_proj"})}));
}

TEST_CASE("adapter settings: all-linear without what is excluded", "[adapter]") {
  const auto all = [](const std::string& family, const std::string& more,
                      AdapterNames names = transformers_5) {
    return selected(family, R"("target_modules": "all-linear")" + more, names);
  };
  const std::vector<std::string> three = {kQuery, kValue, kOutput};
  const Modules rest = all_of({kGateUpParts, kDownParts, kRouters});
  const Modules whole = all_of({of_layers({0, 1, 2}, three), of_layers({0, 1, 2}, {kKey}), rest});
  CHECK(all("qwen3_moe", "") == whole);
  CHECK(selected("qwen3_moe", R"("target_modules": "ALL-Linear")") == whole);
  CHECK(all("qwen3_moe", R"(, "exclude_modules": ["k_proj"])") ==
        all_of({of_layers({0, 1, 2}, three), rest}));
  CHECK(all("qwen3_moe", R"(, "exclude_modules": ".*layers\\.0\\..*")") ==
        all_of({of_layers({1, 2}, three), of_layers({1, 2}, {kKey}), rest}));
  CHECK(all("qwen3_moe", R"(, "modules_to_save": ["k_proj"])") ==
        all_of({of_layers({0, 1, 2}, three), rest}));

  const std::string shared = "mlp.shared_expert.";
  const Modules mlps =
      all_of({of_layers({0, 1}, {shared + "gate_proj", shared + "up_proj", shared + "down_proj"}),
              of_layers({2}, {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})});
  CHECK(all("qwen2_moe", R"(, "exclude_modules": ["shared_expert_gate"])") ==
        all_of({of_layers({0, 1, 2}, three), of_layers({0, 1, 2}, {kKey}), mlps}));
  for (const char* setting : {"exclude_modules", "modules_to_save"}) {
    INFO(setting);
    CHECK(all("qwen2_moe",
              ", \"" + std::string(setting) + R"(": ["shared_expert_gate", "k_proj"])") ==
          all_of({of_layers({0, 1, 2}, three), mlps}));
  }
  CHECK(all("qwen2_moe",
            R"(, "exclude_modules": ["shared_expert_gate", "k_proj"], "target_parameters":
      ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"])") ==
        all_of({of_layers({0, 1, 2}, three), mlps, kGateUpParts, kDownParts}));

  const Modules in_4 =
      all("qwen3_moe", R"(, "exclude_modules": ["q_proj", "mlp.gate"])", transformers_4);
  CHECK(in_4.size() == 3 * 3 + 2 * 9 + 3);
  CHECK(in_4.contains("layers.1.mlp.experts.2.gate_proj"));
  CHECK_FALSE(in_4.contains("layers.1.mlp.gate"));
  CHECK_FALSE(in_4.contains("lm_head"));
}

TEST_CASE("adapter settings: parameters are selected whatever is excluded", "[adapter]") {
  CHECK(selected("qwen2_moe", R"("target_modules": ["q_proj"], "layers_to_transform": [0],
      "exclude_modules": ["mlp.gate", "mlp.experts"],
      "target_parameters": ["mlp.experts.down_proj", "1.mlp.gate.weight"])") ==
        all_of({of_layers({0}, {kQuery}), kDownParts, of_layers({1}, {"mlp.gate"})}));
}

TEST_CASE("adapter settings: defaults and limits", "[adapter]") {
  const std::string list = R"("target_modules": ["q_proj"])";
  const AdapterConfig plain = settings(list);
  CHECK(plain.rank() == 8);
  CHECK(plain.alpha() == 8);
  CHECK_FALSE(plain.rslora());
  const auto many = [](size_t n, const std::string& of) {
    std::string text;
    for (size_t i = 0; i < n; ++i) text += (i == 0 ? "" : ", ") + ("\"" + std::to_string(i)) + of;
    return text;
  };
  const auto saved = [&](size_t n) {
    return refusal_of(list + R"(, "modules_to_save": [)" + many(n, "\"") + "]");
  };
  CHECK(saved(4096).empty());
  CHECK_THAT(saved(4097), ContainsSubstring("expected a list of names"));
  const auto ranks = [&](size_t n) {
    return refusal_of(list + R"(, "rank_pattern": {)" + many(n, "\": 2") + "}");
  };
  CHECK(ranks(10'000).empty());
  CHECK_THAT(ranks(10'001), ContainsSubstring("rank_pattern: more than 10000 keys"));
  const auto pattern = [](size_t n) {
    return refusal_of(R"("target_modules": ")" + std::string(n, 'x') + "\"");
  };
  CHECK(pattern(4096).empty());
  CHECK_THAT(pattern(4097), ContainsSubstring("target_modules: a pattern of more than 4096 bytes"));
}

TEST_CASE("adapter settings: ranks that a stored A may have", "[adapter]") {
  const std::string list = R"("r": 4, "target_modules": ["q_proj"])";
  const AdapterConfig plain = settings(list);
  const AdapterConfig varied = settings(list + R"(, "rank_pattern": {"o_proj": 6})");
  const std::string layer = "model.layers.0.";
  for (const char* fused : {"mlp.experts", "mlp.experts.base_layer"}) {
    INFO(fused);
    CHECK(plain.may_have_rank(layer + fused, 12));
    CHECK_FALSE(plain.may_have_rank(layer + fused, 14));
    CHECK(varied.may_have_rank(layer + fused, 14));
  }
  for (const std::string one : {"self_attn.o_proj", "mlp.experts.1.up_proj"}) {
    INFO(one);
    CHECK(plain.may_have_rank(layer + one, 4));
    CHECK_FALSE(plain.may_have_rank(layer + one, 8));
    CHECK(varied.may_have_rank(layer + one, 6));
  }
  CHECK_FALSE(varied.may_have_rank(layer + "self_attn.o_proj", 8));
}

TEST_CASE("adapter settings: names in a layer and leaf names", "[adapter]") {
  CHECK(name_in_layer("model.layers.3.mlp.gate") == "mlp.gate");
  CHECK(name_in_layer("model.layers.3") == "model.layers.3");
  CHECK(name_in_layer("lm_head") == "lm_head");
  CHECK(leaf_of("model.layers.3.mlp.gate") == "gate");
  CHECK(leaf_of("lm_head") == "lm_head");
}
