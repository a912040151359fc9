// Adapter directories: which targets are written for what was adapted (each form was loaded by PEFT
// 0.21.2, scripts/parity/adapters.py), and that what is read is what was written.
#include <filesystem>
#include <set>

#include "adapter_fixture.h"
#include "peft/targets.h"
#include "peft/write.h"
#include "support/failing_calls.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

/// Two layers, all with experts unless changed.
Json config_of(const std::string& family) {
  Json config = without(changed(small_config(), "model_type", family), "mlp_only_layers");
  config["num_hidden_layers"] = 2;
  if (family == "mixtral" || family == "olmoe") config = without(config, "moe_intermediate_size");
  if (family == "mixtral") {
    config = without(config, "num_experts");
    config["num_local_experts"] = 3;
  }
  if (family == "qwen2_moe" || family == "olmoe") {
    config = without(config, "head_dim");
    config["hidden_size"] = 8;
  }
  if (family == "qwen2_moe") config["shared_expert_intermediate_size"] = 4;
  return config;
}

AdapterPlan plan_of(const Json& config, const std::vector<std::string>& targets,
                    AdapterLayout layout = AdapterLayout::per_expert, double alpha = 32) {
  const Family& family = family_of(config, "config.json");
  ParameterTable table = family.make_table(family.read_config(config, "config.json"));
  const PublishedLayout names(
      table, family, [](const std::string&) { return false; }, "test");
  AdapterOptions options;
  options.rank = 4;
  options.expert_rank = 2;
  options.alpha = alpha;
  options.targets = targets;
  add_adapters(table, names, options);
  return AdapterPlan(table, family, layout);
}

const Names kAttention = {"q_proj", "k_proj", "v_proj", "o_proj"};

Names operator+(Names left, const Names& right) {
  left.insert(right.begin(), right.end());
  return left;
}

Names numbered(const std::string& family = "") {
  Names names;
  for (const char* e : {"0", "1", "2"}) {
    for (const char* leaf : {"gate_proj", "up_proj", "down_proj"}) {
      names.insert("experts." + std::string(e) + "." + leaf + family);
    }
  }
  return names;
}

const std::string kFused = "mlp.experts.", kGateUpPattern = ".*\\.gate_up_proj";
const Names kFusedBoth = {kFused + "gate_up_proj", kFused + "down_proj"};

}  // namespace

TEST_CASE("adapter targets: modules where PEFT moves them, numbered beside equal names",
          "[adapter]") {
  for (const char* family : {"olmoe", "qwen3_moe"}) {
    INFO(family);
    const AdapterPlan plan = plan_of(config_of(family), {"attention", "experts", "router"});
    CHECK(plan.target_modules ==
          kAttention + Names{"gate_proj", "up_proj", "down_proj", "mlp.gate"});
    CHECK(plan.target_parameters.empty());
    CHECK(plan.rank == 2);
    CHECK(plan.scale == 16);
    CHECK(plan.ranks ==
          std::map<std::string, int64_t>{
              {"gate(\\.weight)?", 4}, {"k_proj", 4}, {"o_proj", 4}, {"q_proj", 4}, {"v_proj", 4}});
  }
  const AdapterPlan mixtral = plan_of(config_of("mixtral"), {"experts", "router", "head"});
  CHECK(mixtral.target_modules == Names{"w1", "w2", "w3", "block_sparse_moe.gate", "lm_head"});
  const AdapterPlan dense = plan_of(
      changed(config_of("qwen3_moe"), "mlp_only_layers", JsonArray{1}), {"experts", "dense"});
  CHECK(dense.target_modules == numbered());
  CHECK(dense.target_parameters ==
        Names{"mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"});
}

TEST_CASE("adapter targets: parameters where a module's name means all experts", "[adapter]") {
  const AdapterPlan qwen2 =
      plan_of(config_of("qwen2_moe"), {"experts", "shared-experts", "router"});
  CHECK(qwen2.target_modules == numbered());
  CHECK(qwen2.target_parameters ==
        kFusedBoth + Names{"mlp.shared_expert.gate_proj.weight", "mlp.shared_expert.up_proj.weight",
                           "mlp.shared_expert.down_proj.weight", "mlp.gate.weight"});
  CHECK(qwen2.ranks.at(kGateUpPattern) == 4);
  CHECK(qwen2.ranks.at("mlp.gate.weight") == 4);

  const AdapterPlan layer =
      plan_of(config_of("mixtral"), {"*layers.1.*experts*", "*layers.1.*gate.weight"});
  CHECK(layer.target_modules.empty());
  CHECK(layer.target_parameters == Names{"model.layers.1.mlp.experts.gate_up_proj",
                                         "model.layers.1.mlp.experts.down_proj",
                                         "model.layers.1.mlp.gate.weight"});
  const AdapterPlan queries = plan_of(config_of("qwen3_moe"), {"*layers.1.*q_proj*", "*v_proj*"});
  CHECK(queries.target_modules == Names{"model.layers.1.self_attn.q_proj", "v_proj"});
  CHECK(queries.rank == 4);
  CHECK(queries.ranks.empty());

  const AdapterPlan fused = plan_of(config_of("olmoe"), {"experts"}, AdapterLayout::fused);
  CHECK(fused.target_modules.empty());
  CHECK(fused.target_parameters == kFusedBoth);
  CHECK(fused.ranks == std::map<std::string, int64_t>{{kGateUpPattern, 4}});
}

TEST_CASE("adapter targets: lora_alpha is whole where people write it so", "[adapter]") {
  for (const auto& [alpha, text] : std::map<double, std::string>{
           {3, "3"}, {2.5, "2.5"}, {9e14, "900000000000000"}, {1e17, "1e+17"}}) {
    const Json config =
        plan_of(config_of("olmoe"), {"experts"}, AdapterLayout::per_expert, alpha).config();
    CHECK(config.find("lora_alpha")->dump() == text);
  }
}

TEST_CASE("adapter targets: what loaders stack is whole", "[adapter]") {
  const AdapterPlan gate_up = plan_of(config_of("qwen3_moe"), {"*experts.1.gate_proj*"});
  CHECK(gate_up.pairs.size() == 2 * 3 * 3);
  CHECK(std::count_if(gate_up.pairs.begin(), gate_up.pairs.end(),
                      [](const FilePair& pair) { return pair.a >= 0; }) == 2);
  const AdapterPlan down = plan_of(config_of("qwen3_moe"), {"*experts.1.down_proj*"});
  CHECK(down.pairs.size() == 2 * 3);
  CHECK(down.target_modules == Names{"down_proj"});
}

TEST_CASE("adapter files: what is read is what was written", "[adapter]") {
  const TemporaryDirectory directory;
  int n = 0;
  for (const char* family : {"mixtral", "olmoe", "qwen2_moe", "qwen3_moe"}) {
    const std::string path = directory / (std::string("base-") + family);
    make_checkpoint(config_of(family), path);
    const Checkpoint base(path);
    for (const AdapterLayout layout : {AdapterLayout::per_expert, AdapterLayout::fused}) {
      for (const std::vector<std::string>& targets :
           {std::vector<std::string>{"attention", "experts", "router", "head"},
            {"*layers.1.*"},
            {"*layers.0.*experts.1.*", "*o_proj*"}}) {
        INFO(family << " " << targets[0] << (layout == AdapterLayout::fused ? " fused" : ""));
        AdapterOptions options;
        options.rank = 3;
        options.expert_rank = 2;
        options.alpha = 7;
        options.rslora = true;
        options.targets = targets;
        options.experts = {{0, 1}, {2}};
        const AdapterTable adapters = make_adapters(base, options);
        AdapterFileOptions file_options;
        file_options.layout = layout;
        const std::string out = directory / ("adapter-" + std::to_string(n++));
        write_adapter(adapters.table, base, file_options, out);
        const LoadedAdapter back = read_adapter(out, base);
        CHECK(distance(adapters.table, back.table) < 1e-6);
        // Experts left out are left out again, and ranks are the pairs' own.
        CHECK(back.table.tensors().size() == adapters.table.tensors().size());
        write_adapter(back.table, base, file_options, out + "-again");
        for (const char* name : {"adapter_model.safetensors", "adapter_config.json"}) {
          CHECK(read_text(out + "/" + name) == read_text(out + "-again/" + name));
        }
      }
    }
  }
}

TEST_CASE("adapter files: tensors trained beside adapters stand there whole", "[adapter]") {
  const TemporaryDirectory directory;
  for (const char* family : {"mixtral", "qwen2_moe"}) {
    const std::string path = directory / family, out = path + "-adapter";
    make_checkpoint(config_of(family), path);
    const Checkpoint base(path);
    const AdapterTable adapters = make_adapters(
        base, {}, 3, {"model.norm.weight", "*layers.1.*.gate.weight", "*shared_expert_gate*"});
    write_adapter(adapters.table, base, {}, out);
    const Json config = read_json(out + "/adapter_config.json");
    const JsonArray& saved = config.find("modules_to_save")->as_array();
    CHECK(saved[0].as_string() ==
          (family[0] == 'm' ? "model.layers.1.mlp.gate" : "model.layers.0.mlp.shared_expert_gate"));
    const LoadedAdapter back = read_adapter(out, base);
    write_merged(adapters.table, base, Pool(1), path + "-merged");
    write_merged(back.table, base, Pool(1), path + "-again");
    CHECK(distance(adapters.table, back.table) < 1e-6);
    const Checkpoint merged(path + "-merged");
    const OwnedTable whole = [&] {
      OwnedTable owned(merged, true);
      merged.read_weights(owned.table, Pool(1));
      return owned;
    }();
    for (const Tensor& t : adapters.table.tensors()) {
      if (!t.trainable || t.factor != Factor::none) continue;
      INFO(t.name);
      const TensorId id = *back.table.find(t.name);
      const auto* values = t.home().view.as<float>();
      CHECK(std::equal(values, values + t.size(), back.table.tensor(id).home().view.as<float>()));
      CHECK(std::equal(values, values + t.size(), whole.table.weight(id).as<float>()));
    }
  }
  const Checkpoint base(directory / "qwen2_moe");
  for (const char* glob : {"*experts.0.up_proj.weight", "*q_proj.weight", "*q_proj.bias"}) {
    const AdapterTable adapters = make_adapters(base, {}, 3, {glob});
    CHECK_THAT(error_of([&] { require_storable(adapters.table, base.family()); }, ExitCode::usage),
               ContainsSubstring("an adapter directory cannot hold"));
  }
}

TEST_CASE("adapter files: an embedding is trained beside adapters where it is not the head",
          "[adapter]") {
  const TemporaryDirectory directory;
  for (const bool tied : {false, true}) {
    const std::string path = directory / (tied ? "tied" : "own");
    make_checkpoint(changed(config_of("qwen3_moe"), "tie_word_embeddings", tied), path);
    const Checkpoint base(path);
    const auto refused_for = [&](const char* glob) {
      const AdapterTable adapters = make_adapters(base, {}, 3, {glob});
      return error_of([&] { require_storable(adapters.table, base.family()); }, ExitCode::usage);
    };
    CHECK(refused_for("model.norm.weight").empty());
    const std::string embedding = refused_for("model.embed_tokens.weight");
    if (tied) {
      CHECK_THAT(embedding, ContainsSubstring("cannot hold an embedding that is also the head"));
    } else {
      CHECK(embedding.empty());
    }
  }
}

TEST_CASE("adapter files: config, card and companions", "[adapter]") {
  const TemporaryDirectory directory;
  make_checkpoint(config_of("qwen3_moe"), directory / "base");
  write_text(directory / "base/tokenizer.json", "{}");
  const Checkpoint base(directory / "base");
  AdapterOptions adapter;
  adapter.rank = adapter.expert_rank = 2;
  adapter.alpha = 5;
  AdapterFileOptions options;
  options.base_name = "org/\"name\"";
  options.card = {{"steps", "3|4\n5"}};
  const AdapterTable adapters = make_adapters(base, adapter);
  write_adapter(adapters.table, base, options, directory / "out");
  const Json config = read_json(directory / "out/adapter_config.json");
  CHECK(config.find("peft_type")->as_string() == "LORA");
  CHECK(config.find("r")->as_int() == 2);
  CHECK(config.find("lora_alpha")->as_int() == 5);
  CHECK(config.find("lora_dropout")->as_double() == 0);
  CHECK(config.find("base_model_name_or_path")->as_string() == "org/\"name\"");
  const std::string card = read_text(directory / "out/README.md");
  CHECK(card.starts_with("---\nbase_model: \"org/\\\"name\\\"\"\nlibrary_name: peft\n"));
  CHECK_THAT(card, ContainsSubstring("| steps | 3\\|4 5 |"));
  CHECK_THAT(card, ContainsSubstring("* PEFT before 0.19 on transformers 5 loses its experts"));
  CHECK(card.find("license") == std::string::npos);
  CHECK(fs::exists(directory / "out/tokenizer.json"));
  CHECK_FALSE(fs::exists(directory / "out/config.json"));
  CHECK_THAT(error_of([&] { write_adapter(adapters.table, base, options, directory / "out"); },
                      ExitCode::usage),
             ContainsSubstring("exists already"));
}

TEST_CASE("adapter files: a value that is not finite is never written", "[adapter]") {
  const TemporaryDirectory directory;
  make_checkpoint(config_of("olmoe"), directory / "base");
  const Checkpoint base(directory / "base");
  AdapterTable adapters = make_adapters(base, {});
  adapters.memory[1] = std::numeric_limits<float>::infinity();
  CHECK_THAT(error_of([&] { write_adapter(adapters.table, base, {}, directory / "out"); },
                      ExitCode::numeric),
             ContainsSubstring("element 1 is not finite"));
  CHECK_FALSE(fs::exists(directory / "out"));
  CHECK_FALSE(fs::exists(directory / ".tmp-out"));
}
