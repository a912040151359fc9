// What is said of an adapter without its base: checks and digests.
#include "adapter_fixture.h"
#include "peft/check.h"
#include "peft/write.h"
#include "support/stored_tensors.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kFirstA = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
constexpr const char* kOneB = "base_model.model.model.layers.1.mlp.experts.2.up_proj.lora_B.weight";

struct CheckedAdapter {
  CheckedAdapter() {
    make_checkpoint(small_config(), directory / "base");
    const Checkpoint base(directory / "base");
    AdapterOptions options;
    options.rank = options.expert_rank = 2;
    options.targets = {"attention", "experts"};
    write_adapter(make_adapters(base, options).table, base, {}, adapter());
  }
  std::string adapter() const { return directory / "adapter"; }
  std::string weights() const { return directory / "adapter/adapter_model.safetensors"; }
  std::string config() const { return directory / "adapter/adapter_config.json"; }

  TemporaryDirectory directory;
};

}  // namespace

TEST_CASE("adapters: damage is found without the base", "[adapter]") {
  const CheckedAdapter c;
  const std::string weights = c.weights(), config = c.config();
  const std::string bytes = read_text(weights), settings = read_text(config);
  const auto check = [&] { return error_of([&] { check_adapter(c.adapter()); }); };
  CHECK(check().empty());
  for (const size_t back : {1, 100, 501}) {  // bytes before the end: values, still finite
    std::string flipped = bytes;
    flipped[bytes.size() - back] ^= 1;
    write_text(weights, flipped);
    CHECK_THAT(check(), ContainsSubstring("content digest mismatch"));
  }
  write_text(weights, bytes);
  const auto with = [&](const char* key, const char* value) {
    Json changed = parse_json(settings, "settings");
    changed[key] = parse_json(value, "value");
    write_text(config, changed.dump());
    const std::string error = check();
    write_text(config, settings);
    return error;
  };
  CHECK_THAT(with("r", "1024"),
             ContainsSubstring("neither r nor rank_pattern of " + config + " gives"));
  CHECK_THAT(with("modules_to_save", "[\"lm_head\"]"),
             ContainsSubstring("modules_to_save selects 'lm_head'"));
}

TEST_CASE("adapters: fused ranks are multiples of r, as far as it shows without the base",
          "[adapter]") {
  const AdapterCase c(AdapterLayout::fused, {"experts"});
  const auto with_rank = [&](int r) {  // 3 experts: 12 rows of gate and up, 6 of down
    Json config = without(read_json(c.adapter() + kAdapterConfigFile), "rank_pattern");
    write_text(c.adapter() + kAdapterConfigFile, changed(config, "r", r).dump());
    return error_of([&] { check_adapter(c.adapter()); });
  };
  CHECK(with_rank(2).empty());
  CHECK(with_rank(6).empty());
  CHECK_THAT(with_rank(4),
             ContainsSubstring("mlp.experts.lora_A.weight' has rank 6, which neither r"));
  CHECK_THAT(with_rank(5),
             ContainsSubstring("base_layer.lora_A.weight' has rank 12, which neither r"));
}

TEST_CASE("adapters: checked and hashed without the base", "[adapter]") {
  const CheckedAdapter c;
  CHECK(is_adapter(c.adapter()));
  CHECK_FALSE(is_adapter(c.directory / "base"));
  CHECK(error_of([&] { check_adapter(c.adapter()); }).empty());
  const Digest root = digest_adapter(c.adapter()).root;
  const auto checked = [&](const std::function<void(std::vector<StoredTensor>&)>& change) {
    std::vector<StoredTensor> tensors = load(c.weights());
    change(tensors);
    store(c.weights(), tensors);
    return error_of([&] { check_adapter(c.adapter()); });
  };
  CHECK(checked([](auto& all) { std::reverse(all.begin(), all.end()); }).empty());
  CHECK(digest_adapter(c.adapter()).root == root);
  CHECK(checked([](auto& all) { named(all, kFirstA).data[0] ^= 1; }).empty());
  CHECK_FALSE(digest_adapter(c.adapter()).root == root);
  CHECK_THAT(checked([](auto& all) {
               const float bad = std::nanf("");
               std::memcpy(named(all, kOneB).data.data() + 12, &bad, 4);
             }),
             ContainsSubstring("element 3 is not finite"));
  CHECK_THAT(checked([](auto& all) {
               std::erase_if(all, [](const StoredTensor& t) { return t.entry.name == kFirstA; });
             }),
             ContainsSubstring("has no lora_A"));
  const std::vector<StoredTensor> less = load(c.weights());
  const auto shaped = [&](const char* name, const std::vector<int64_t>& shape) {
    store(c.weights(), less);
    return checked([&](auto& all) { named(all, name).entry.shape = shape; });
  };
  CHECK_THAT(shaped(kOneB, {10}),
             ContainsSubstring(std::string("unknown tensor '") + kOneB + "' of shape [10]"));
  CHECK_THAT(
      shaped(kOneB, {10, 1}),
      ContainsSubstring(std::string(kOneB) + "' of shape [10, 1] has no lora_A of its rank"));
}
