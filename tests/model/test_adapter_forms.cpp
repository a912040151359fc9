// Forms of what an adapter's file has: types, fused pairs, tensors that come twice or whole.
#include "adapter_fixture.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kPrefix = "base_model.model.";
const std::string kFirstLayer = kPrefix + "model.layers.0.";
const std::string kOuter = kFirstLayer + "mlp.experts.", kInner = kOuter + "base_layer.";
const std::string kHalfA = "lora_A.weight", kHalfB = "lora_B.weight";

AdapterReadOptions packed_as_peft() {
  AdapterReadOptions options;
  options.fused_as_peft = true;
  return options;
}

Json mixtral_config() {
  Json config = without(changed(small_config(), "model_type", "mixtral"), "mlp_only_layers");
  config = without(without(config, "moe_intermediate_size"), "num_experts");
  return changed(config, "num_local_experts", 3);
}

/// A copy of a tensor under another name.
void copy_as(std::vector<StoredTensor>& all, const std::string& name, const std::string& copy) {
  StoredTensor tensor = named(all, name);
  tensor.entry.name = copy;
  all.push_back(std::move(tensor));
}

void reshape(StoredTensor& tensor, int64_t rows, int64_t columns) {
  tensor.entry.shape = {rows, columns};
  tensor.data.resize(static_cast<size_t>(4 * rows * columns));
}

}  // namespace

TEST_CASE("adapter forms: tensors in bf16 and f16", "[adapter]") {
  const AdapterCase c;
  const std::vector<StoredTensor> f32 = load(c.adapter() + kAdapterWeightsFile);
  for (const auto& [type, name] : {std::pair{DType::bf16, "BF16"}, {DType::f16, "F16"}}) {
    INFO(name);
    std::vector<StoredTensor> stored = f32, rounded = f32;
    for (size_t i = 0; i < f32.size(); ++i) {
      const auto n = static_cast<int64_t>(f32[i].data.size() / 4);
      stored[i].entry.dtype = name;
      stored[i].data.resize(static_cast<size_t>(2 * n));
      convert(DType::f32, f32[i].data.data(), type, stored[i].data.data(), n);
      convert(type, stored[i].data.data(), DType::f32, rounded[i].data.data(), n);
    }
    const auto memory = [&](const std::vector<StoredTensor>& tensors) {
      store(c.adapter() + kAdapterWeightsFile, tensors);
      return read_adapter(c.adapter(), c.base()).memory;
    };
    const std::vector<float> got = memory(stored);
    CHECK(got == memory(rounded));
    CHECK_FALSE(got == memory(f32));
  }
}

TEST_CASE("adapter forms: gate and up alone, and down alone", "[adapter]") {
  const AdapterCase c(AdapterLayout::fused, {"experts"});
  const std::string weights = c.adapter() + kAdapterWeightsFile;
  const std::string config = c.adapter() + kAdapterConfigFile;
  store(weights, load(weights));  // without notes
  const std::vector<StoredTensor> both = load(weights);
  const auto read = [&] {
    return deltas(read_adapter(c.adapter(), c.base(), packed_as_peft()).table);
  };
  const auto whole = read();
  REQUIRE(whole.size() == 2 * 9);
  // PEFT nests only the second parameter, so what is alone has the outer names.
  for (const bool gate_up : {true, false}) {
    INFO((gate_up ? "gate_up" : "down"));
    std::vector<StoredTensor> alone = both;
    std::erase_if(alone, [&](const StoredTensor& t) {
      return (t.entry.name.find(".base_layer.") != std::string::npos) != gate_up;
    });
    for (StoredTensor& t : alone) {
      const size_t at = t.entry.name.find(".base_layer.");
      if (gate_up) t.entry.name.erase(at, std::string(".base_layer").size());
    }
    store(weights, alone);
    const Json parameter(std::string("mlp.experts.") + (gate_up ? "gate_up_proj" : "down_proj"));
    write_text(config,
               changed(read_json(config), "target_parameters", JsonArray{parameter}).dump());
    auto expected = whole;
    std::erase_if(expected, [&](const auto& of) {
      return (of.first.find("down_proj") == std::string::npos) != gate_up;
    });
    CHECK(expected.size() == (gate_up ? 12 : 6));
    const bool same = read() == expected;
    CHECK(same);
  }
}

TEST_CASE("adapter forms: fused pairs that do not fit are refused by name", "[adapter]") {
  const AdapterCase c(AdapterLayout::fused, {"experts"});
  const auto expect = [&](const std::string& part,
                          const std::function<void(std::vector<StoredTensor>&)>& change) {
    CHECK_THAT(c.with_tensors(change, packed_as_peft()), ContainsSubstring(part));
  };
  expect("the outer pair 'model.layers.0.mlp.experts' is missing", [](auto& all) {
    std::erase_if(all, [](const StoredTensor& t) {
      return t.entry.name == kOuter + kHalfA || t.entry.name == kOuter + kHalfB;
    });
  });
  expect("'model.layers.0.mlp.experts.1.up_proj' also has a pair of its own", [](auto& all) {
    for (const std::string& half : {kHalfA, kHalfB}) {
      copy_as(all, kInner + half, kOuter + "1.up_proj." + half);
    }
  });
  expect("has shape [2, 5], expected [3, 5] for 3 experts of shape [6, 5]",
         [](auto& all) { reshape(named(all, kOuter + kHalfA), 2, 5); });

  // Ranks of gate and up that cannot be halved.
  const std::string odd = c.after([](const std::string& copy) {
    std::vector<StoredTensor> all = load(copy + kAdapterWeightsFile);
    reshape(named(all, kInner + kHalfA), 9, 6);
    reshape(named(all, kInner + kHalfB), 10, 9);
    store_noted(copy, all, {{"hearth.gate_up", "block-diagonal"}});
    const std::string config = copy + kAdapterConfigFile;
    const Json ranks = JsonObject{{".*\\.gate_up_proj", 3}};
    write_text(config, changed(read_json(config), "rank_pattern", ranks).dump());
  });
  CHECK_THAT(odd,
             ContainsSubstring(kInner + kHalfA + "' has an odd rank, although hearth.gate_up"));
}

TEST_CASE("adapter forms: what comes twice under two names is refused", "[adapter]") {
  const AdapterCase c(AdapterLayout::per_expert, {"router"}, mixtral_config(),
                      {"model.norm.weight", "lm_head.weight"});
  const auto expect = [&](const std::string& part,
                          const std::function<void(std::vector<StoredTensor>&)>& change) {
    CHECK_THAT(c.with_tensors(change), ContainsSubstring(part));
  };
  CHECK(c.with_tensors([](auto&) {}).empty());
  const std::string now = kFirstLayer + "mlp.gate.lora_A.weight";
  const std::string before = kFirstLayer + "block_sparse_moe.gate.lora_A.weight";
  expect(now + "' is stored a second time as '" + before,
         [&](auto& all) { copy_as(all, before, now); });
  expect("lm_head.base_layer.weight' has shape [11, 6], or is there twice", [](auto& all) {
    copy_as(all, kPrefix + "lm_head.weight", kPrefix + "lm_head.base_layer.weight");
  });
  expect("model.norm.weight': element 3 is not finite", [](auto& all) {
    const float bad = std::nanf("");
    std::memcpy(named(all, kPrefix + "model.norm.weight").data.data() + 12, &bad, 4);
  });
}

TEST_CASE("adapter forms: a copy of the base's tensor is passed over, another one refused",
          "[adapter]") {
  const AdapterCase c;
  const std::string norm = "model.norm.weight";
  const auto with_norm = [&](const std::function<void(StoredTensor&)>& change) {
    return c.with_tensors([&](std::vector<StoredTensor>& all) {
      std::vector<StoredTensor> base = load(c.base().directory() + "/model.safetensors");
      StoredTensor copy = named(base, norm);
      copy.entry.name = kPrefix + norm;
      change(copy);
      all.push_back(std::move(copy));
    });
  };
  CHECK(with_norm([](StoredTensor&) {}).empty());
  CHECK_THAT(with_norm([](StoredTensor& copy) { copy.data[3] ^= 1; }),
             ContainsSubstring("tensor '" + kPrefix + norm + "' is not the tensor of " +
                               c.base().directory() + ", and modules_to_save does not name it"));
}

TEST_CASE("adapter forms: fused pairs that are read in several pieces", "[adapter]") {
  const TemporaryDirectory directory;
  make_checkpoint(changed(small_config(), "hidden_size", 512), directory / "base");
  const Checkpoint base(directory / "base");
  AdapterOptions options;
  options.rank = options.expert_rank = 1024;  // rows of the three experts: 1.5 M elements
  options.targets = {"experts"};
  const AdapterTable adapters = make_adapters(base, options);
  AdapterFileOptions files;
  files.layout = AdapterLayout::fused;
  write_adapter(adapters.table, base, files, directory / "adapter");
  const LoadedAdapter back = read_adapter(directory / "adapter", base);
  CHECK(distance(adapters.table, back.table) < 1e-3);
}

TEST_CASE("adapter forms: ranks that the settings do not say", "[adapter]") {
  const AdapterCase c;
  // Of gate and up together, so half of it each.
  CHECK_THAT(
      c.with("rank_pattern", R"({".*gate_up_proj": 3})"),
      ContainsSubstring("has rank 2, but r and rank_pattern of") && ContainsSubstring("say 1.5"));
  CHECK_THAT(c.with("rank_pattern", R"({".*gate_up_proj": 6})"), ContainsSubstring("say 3"));
  CHECK(c.with("rank_pattern", R"({".*gate_up_proj": 4})").empty());
}

TEST_CASE("adapter forms: pairs that are all noted as empty, a base without a name", "[adapter]") {
  const AdapterCase c(AdapterLayout::per_expert, {"*layers.0.*q_proj*"});
  const auto noted = [&](const Notes& notes) {
    return c.after([&](const std::string& copy) {
      store_noted(copy, load(copy + kAdapterWeightsFile), notes);
      const std::string config = copy + kAdapterConfigFile;
      write_text(config, without(read_json(config), "base_model_name_or_path").dump());
    });
  };
  CHECK(noted({}).empty());
  CHECK_THAT(noted({{"hearth.ranks", R"({"model.layers.0.self_attn.q_proj": 0})"}}),
             ContainsSubstring("notes every pair as empty"));
  CHECK_THAT(noted({{"hearth.base", std::string(32, '0')}}),
             ContainsSubstring("trained on another base than " + c.base().directory() +
                               "; to apply it anyway, pass accepting another base"));
}

TEST_CASE("adapter forms: patterns are tried on modules within bounds", "[adapter]") {
  Json config = changed(changed(small_config(), "num_hidden_layers", 20), "num_experts", 42);
  const AdapterCase c(AdapterLayout::per_expert, {"*layers.0.*q_proj*"},
                      without(config, "mlp_only_layers"));
  const auto with_keys = [&](int64_t n) {
    JsonObject keys;
    for (int64_t i = 0; i < n; ++i) keys.emplace_back("m" + std::to_string(i), 2);
    return c.after([&](const std::string& copy) {
      const std::string path = copy + kAdapterConfigFile;
      Json settings = changed(read_json(path), "rank_pattern", keys);
      write_text(path, changed(settings, "alpha_pattern", keys).dump());
    });
  };
  // 20 layers of 42 experts, 4 matrices of attention and a router: 2,620 modules.
  CHECK(with_keys(9'500).empty());
  CHECK_THAT(with_keys(9'600), ContainsSubstring("too many keys"));
}
