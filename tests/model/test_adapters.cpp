// Adapters in the parameter table: what targets name, ranks and scales, drawing A.
#include "model/adapters.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "model/family.h"
#include "model/parameter_memory.h"
#include "support/raises.h"
#include "support/tiny_config.h"

namespace hearth::test {
namespace {

struct Model {
  ModelSpec spec;
  ParameterTable table;
  PublishedLayout layout;

  explicit Model(const JsonObject& changes = {}, bool fused = false) {
    const Json json = parse_json(tiny_config(changes), "config.json");
    const Family& family = family_of(json, "config.json");
    spec = family.read_config(json, "config.json");
    table = family.make_table(spec);
    const auto stored = [&](const std::string& name) {
      const bool of_expert = name.find(".experts.") != std::string::npos;
      return of_expert && fused
                 ? name.ends_with("gate_up_proj") || name.ends_with("experts.down_proj")
                 : table.find(name).has_value();
    };
    layout = PublishedLayout(table, family, stored, "the model");
  }

  /// How many tensors get a pair.
  int64_t adapted(const std::vector<std::string>& targets, const ExpertChoice& experts = {},
                  const std::vector<std::string>& freeze = {}) {
    const size_t before = table.tensors().size();
    AdapterOptions options;
    options.targets = targets;
    options.experts = experts;
    options.freeze = freeze;
    add_adapters(table, layout, options);
    return static_cast<int64_t>(table.tensors().size() - before) / 2;
  }
};

TEST_CASE("adapters: groups, globs, chosen experts") {
  CHECK(Model().adapted({"attention"}) == 2 * 4);
  CHECK(Model().adapted({"experts"}) == 2 * 5 * 3);
  CHECK(Model().adapted({"attention", "experts", "router", "head"}) == 8 + 30 + 2 + 1);
  const JsonObject shared = {{"model_type", "qwen2_moe"},
                             {"shared_expert_intermediate_size", 9},
                             {"mlp_only_layers", JsonArray{0}}};
  CHECK(Model(shared).adapted({"shared-experts"}) == 3);
  CHECK(Model(shared).adapted({"dense"}) == 3);
  CHECK(Model().adapted({"*.layers.1.self_attn.q_proj.weight"}) == 1);
  CHECK(Model().adapted({"*.experts.3.*"}) == 2 * 3);
  CHECK(Model().adapted({"experts"}, {{0, 4}, {2}}) == 3 * 3);
  CHECK(Model({}, true).adapted({"*.experts.gate_up_proj"}) == 2 * 5 * 2);
  CHECK(Model({}, true).adapted({"*.experts.3.down_proj.weight"}) == 2);
  CHECK(Model().adapted({"attention", "experts"}, {}, {"*.layers.0.*", "*q_proj*"}) == 3 + 15);
  CHECK(raised_by([] {
          Model().adapted({"attention"}, {}, {"*.self_attn.*"});
        }).says("the frozen tensors"));
}

TEST_CASE("adapters: what cannot have one is refused") {
  const auto refused = [](const JsonObject& changes, const std::string& target) {
    Model model(changes);
    const Raised raised = raised_by([&] { model.adapted({"attention", target}); });
    CHECK(raised.code == ExitCode::usage);
    CHECK(raised.says(target));
    return raised.message;
  };
  CHECK(refused({}, "dense").find("no such part") != std::string::npos);
  CHECK(refused({}, "shared-experts").find("no such part") != std::string::npos);
  CHECK(refused({}, "*.q_proj").find("no tensor") != std::string::npos);
  CHECK(refused({}, "*norm.weight").find("is not a linear map") != std::string::npos);
  CHECK(refused({}, "*embed_tokens*").find("is not a linear map") != std::string::npos);
  CHECK(refused({{"tie_word_embeddings", true}}, "head").find("tie_word") != std::string::npos);
}

TEST_CASE("adapters: ranks, scales, names, views") {
  Model model;
  const size_t before = model.table.tensors().size();
  AdapterOptions options;
  options.rank = 4;
  options.expert_rank = 2;
  options.alpha = 8;
  options.targets = {"attention", "experts"};
  CHECK(options.scale_of(4) == 2);
  options.rslora = true;
  CHECK(options.scale_of(4) == 4);
  add_adapters(model.table, model.layout, options);
  const ParameterTable& table = model.table;
  CHECK(table.tensor(static_cast<TensorId>(before)).name ==
        "model.layers.0.self_attn.q_proj.lora_A.weight");
  const BlockId expert = table.find_block(BlockKind::expert, 1, 3);
  const auto adapter = table.adapter_of(expert);
  REQUIRE(adapter);
  CHECK(table.block(*adapter).scale == 8 / std::sqrt(2.0));
  CHECK(table.block(*adapter).layer == 1);
  CHECK(table.rank_of(expert, expert + 1) == 2);
  CHECK_FALSE(table.adapter_of(table.find_block(BlockKind::router, 0)));
  const auto [first, last] = table.adapters_of(expert - 3, expert + 2);
  CHECK(last - first == 5);
  CHECK(has_adapters(table));
}

TEST_CASE("adapters: A is drawn by seed and name alone, B is zero") {
  const auto drawn = [](uint64_t seed, const std::vector<std::string>& targets) {
    Model model;
    model.adapted(targets);
    for (Tensor& t : model.table.tensors()) t.trainable = t.factor != Factor::none;
    const CopyPolicy policy{true, Compute::f32, DType::f32};
    std::vector<std::vector<double>> memory;
    std::array<std::byte*, kCopyRoles> arenas{};
    for (const ParameterArena& arena : parameter_arenas(model.table, policy)) {
      memory.emplace_back(arena.bytes / sizeof(double) + 1);
      arenas[static_cast<size_t>(arena.role)] = reinterpret_cast<std::byte*>(memory.back().data());
    }
    bind_parameters(model.table, policy, arenas);
    init_adapters(model.table, seed);
    const auto id = model.table.find("model.layers.1.self_attn.o_proj.lora_A.weight");
    const ConstView a = model.table.weight(*id), b = model.table.weight(*id + 1);
    for (int64_t i = 0; i < b.size(); ++i) CHECK(b.as<float>()[i] == 0);
    return std::vector<float>(a.as<float>(), a.as<float>() + a.size());
  };
  const std::vector<float> one = drawn(1, {"attention"});
  CHECK(drawn(1, {"experts", "attention", "head"}) == one);
  CHECK(drawn(2, {"attention"}) != one);
  double largest = 0, mean = 0;
  for (const float x : one) {
    largest = std::max<double>(largest, std::abs(x));
    mean += x / static_cast<double>(one.size());
  }
  const double bound = 1 / std::sqrt(32.0);
  CHECK(largest <= bound);
  CHECK(largest > 0.95 * bound);
  CHECK(std::abs(mean) < 0.1 * bound);
}

TEST_CASE("adapters: a report by group") {
  Model model;
  for (Tensor& t : model.table.tensors()) t.trainable = t.slot == Slot::router;
  model.adapted({"attention", "experts"});
  const std::vector<TrainedGroup> groups = trained_groups(model.table);
  REQUIRE(groups.size() == 6);
  CHECK(groups[0].name == "embedding");
  CHECK(groups[1].name == "attention");
  CHECK(groups[1].trained_tensors == 16);
  CHECK(groups[1].trained_parameters == 2 * 16 * ((24 + 32) * 2 + (24 + 16) * 2));
  CHECK(groups[2].name == "router");
  CHECK(groups[2].trained_parameters == groups[2].parameters);
  CHECK(groups[3].name == "experts");
  CHECK(groups[3].parameters == 2 * 5 * 3 * 24 * 12);
  CHECK(groups[3].trained_parameters == 2 * 5 * 3 * 16 * (24 + 12));
  CHECK(groups[4].name == "norms");
  CHECK(groups[4].trained_tensors == 0);
}

}  // namespace
}  // namespace hearth::test
