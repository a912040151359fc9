// Reading adapters: what PEFT made, and what is refused.
#include <filesystem>

#include "adapter_fixture.h"
#include "support/test_paths.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const std::string kQ_A = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
const std::string kExpertB = "base_model.model.model.layers.1.mlp.experts.2.up_proj.lora_B.weight";
const std::string kGateUpB = "base_model.model.model.layers.0.mlp.experts.base_layer.lora_B.weight";

}  // namespace

TEST_CASE("adapters made by PEFT: merged they are what PEFT merges", "[adapter]") {
  for (const std::string name : {"fused", "converted", "head"}) {
    INFO(name);
    const TemporaryDirectory directory;
    const std::string from = test_data() + "/adapters/" + name;
    const Checkpoint base(from + "/base");
    const LoadedAdapter adapters = read_adapter(from + "/adapter", base);
    write_merged(adapters.table, base, Pool(2), directory / "merged");
    const SafetensorsFile ours(directory / "merged/model.safetensors");
    const SafetensorsFile theirs(from + "/merged.safetensors");
    size_t moved = 0;
    for (const SafetensorsEntry& entry : theirs.header().entries) {
      INFO(entry.name);
      const TensorLocation& at = base.location(entry.name);
      std::vector<float> expected((entry.end - entry.begin) / sizeof(float)), got = expected,
                                                                              before = expected;
      const size_t bytes = expected.size() * sizeof(float);
      theirs.read(entry, expected.data(), bytes, 0);
      ours.read(Checkpoint(directory / "merged").location(entry.name).entry, got.data(), bytes, 0);
      base.files()[0]->read(at.entry, before.data(), bytes, 0);
      float largest = 0, error = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        error = std::max(error, std::abs(expected[i] - got[i]));
      }
      CHECK(error <= 1e-6f * largest);
      moved += expected != before;
    }
    CHECK(moved ==
          std::map<std::string, size_t>{{"fused", 24}, {"converted", 22}, {"head", 1}}.at(name));
  }
}

TEST_CASE("adapters: settings that are not applied exactly are refused by name", "[adapter]") {
  const AdapterCase c;
  CHECK(c.with("use_rslora", "false").empty());
  CHECK(c.with("something_new", "null").empty());
  CHECK(c.with("init_lora_weights", "\"gaussian\"").empty());
  const std::map<std::string, std::vector<std::string>> refused = {
      {"peft_type", {"\"LOHA\"", "null", "3"}},
      {"task_type", {"\"SEQ_CLS\""}},
      {"use_dora", {"true"}},
      {"bias", {"\"all\"", "\"lora_only\""}},
      {"modules_to_save",
       {"[\"lm_head\"]", "\"lm_head\"", "[\"q_proj\"]", "[\"no_such_module\"]",
        "[\"mlp.experts\"]"}},
      {"fan_in_fan_out", {"true"}},
      {"lora_bias", {"true"}},
      {"alora_invocation_tokens", {"[1, 2]"}},
      {"layer_replication", {"[[0, 2]]"}},
      {"trainable_token_indices", {"[1]"}},
      {"init_lora_weights", {"\"pissa\"", "\"olora\"", "\"eva\"", "\"corda\"", "\"loftq\"", "3"}},
      {"something_new", {"true", "1", "\"x\"", "{\"a\": 1}"}},
      {"r", {"3", "0", "1.5", "-2", "\"2\"", "1e300"}},
      {"lora_alpha", {"null", "0", "-1", "\"x\"", "1e30"}},
      {"lora_dropout", {"2", "\"x\""}},
      {"rank_pattern",
       {"{\"q_proj\": 3}", "{\"q_proj\": 1.5}", "{\"q_proj\": 0}", "{\"q_proj\": 1e10}",
        "{\"q_(\": 2}", "[]"}},
      {"alpha_pattern", {"{\"q_proj\": \"x\"}", "{\"(\": 2}"}},
      {"target_modules", {"[]", "null", "[\"q_proj\"]", "[1]", "{}", "\"(\"", "\"all-linear\""}},
      {"target_parameters", {"[\"mlp.gate.weight\"]", "\"x\""}},
      {"exclude_modules", {"[\"q_proj\"]", "\".*0.*\""}},
      {"layers_to_transform", {"[0]", "1", "[\"x\"]"}},
      {"layers_pattern", {"\"h\""}},
  };
  for (const auto& [key, values] : refused) {
    for (const std::string& value : values) {
      INFO(key << ": " << value);
      const std::string error = c.with(key, value);
      // A rank that does not fit is told by the tensor, with the names of the settings.
      const bool told = error.find(key) != std::string::npos ||
                        error.find("target_modules and target_parameters") != std::string::npos;
      CHECK(told);
    }
  }
  CHECK_THAT(c.with("target_modules", "\"(a|a)*(a|a)*(a|a)*b.*q_proj.*|(.*.*.*.*.*)*x\""),
             ContainsSubstring("too many steps"));
}

TEST_CASE("adapters: tensors that do not fit are refused by name", "[adapter]") {
  const AdapterCase c;
  CHECK(c.with_tensors([](auto&) {}).empty());
  const auto expect = [&](const std::string& part,
                          const std::function<void(std::vector<StoredTensor>&)>& change) {
    CHECK_THAT(c.with_tensors(change), ContainsSubstring(part));
  };
  expect(kQ_A + "' is missing", [](auto& all) {
    std::erase_if(all, [](const StoredTensor& t) { return t.entry.name == kQ_A; });
  });
  expect(kExpertB + "' is missing", [](auto& all) {
    std::erase_if(all, [](const StoredTensor& t) { return t.entry.name == kExpertB; });
  });
  expect("unknown tensor 'other'", [](auto& all) { named(all, kQ_A).entry.name = "other"; });
  expect("no matrix 'model.layers.7.self_attn.q_proj'", [](auto& all) {
    named(all, kQ_A).entry.name = "base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight";
  });
  expect("no matrix 'model.embed_tokens'", [](auto& all) {
    named(all, kQ_A).entry.name = "base_model.model.model.embed_tokens.lora_A.weight";
  });
  expect("has shape [6, 2]", [](auto& all) { named(all, kQ_A).entry.shape = {6, 2}; });
  expect("expected two dimensions", [](auto& all) { named(all, kQ_A).entry.shape = {12}; });
  expect("stored as I32", [](auto& all) { named(all, kQ_A).entry.dtype = "I32"; });
  expect("element 3 is not finite", [](auto& all) {
    const float bad = std::nanf("");
    std::memcpy(named(all, kExpertB).data.data() + 12, &bad, 4);
  });
  expect("select 'model.layers.0.mlp.experts.0.gate_proj'", [](auto& all) {
    std::erase_if(all, [](const StoredTensor& t) {
      return t.entry.name.find("layers.0.mlp") != std::string::npos;
    });
  });
  expect("no tensors", [](auto& all) { all.clear(); });
}

TEST_CASE("adapters: fused experts need to say how they are packed", "[adapter]") {
  const AdapterCase c(AdapterLayout::fused, {"experts"});
  AdapterReadOptions fused;
  fused.fused_as_peft = true;
  // Without this program's note nothing says so; with PEFT's version the config does.
  const auto nothing = [](auto&) {};
  CHECK_THAT(c.with_tensors(nothing), ContainsSubstring("the adapter layout fused"));
  CHECK(c.with_tensors(nothing, fused).empty());
  const auto versioned = [&](const std::string& version, const std::string& mapping) {
    return c.after([&](const std::string& copy) {
      store(copy + kAdapterWeightsFile, load(copy + kAdapterWeightsFile));
      Json config = changed(read_json(copy + kAdapterConfigFile), "peft_version", version);
      config["auto_mapping"] = parse_json(mapping, "mapping");
      write_text(copy + kAdapterConfigFile, config.dump());
    });
  };
  for (const char* good : {"0.19.1", "0.21.2", "0.20.0.dev0", "1.0.0"}) {
    CHECK(versioned(good, "null").empty());
  }
  for (const char* old : {"0.19.0", "0.18.1", "0.19.1.dev0", "x", ""}) {
    CHECK_THAT(versioned(old, "null"), ContainsSubstring("the adapter layout fused"));
  }
  CHECK_THAT(versioned("0.21.2", R"({"unsloth_fixed": true})"),
             ContainsSubstring("the adapter layout fused"));
  CHECK_THAT(c.with_tensors(
                 [](auto& all) {
                   named(all, kGateUpB).entry.shape = {12, 10};
                 },
                 fused),
             ContainsSubstring("expected [10, 12]"));
}

TEST_CASE("adapters: what the file's notes say holds", "[adapter]") {
  AdapterCase c(AdapterLayout::fused, {"experts"});
  const std::string copy = c.adapter();
  std::vector<StoredTensor> tensors = load(copy + kAdapterWeightsFile);
  const auto rewrite = [&](const Notes& notes) {
    store_noted(copy, tensors, notes);
    return error_of([&] { read_adapter(copy, c.base()); });
  };
  const std::pair<std::string, std::string> diagonal{"hearth.gate_up", "block-diagonal"};
  const std::string digest = base_digest(c.base()).hex();
  CHECK(rewrite({diagonal, {"hearth.base", digest}}).empty());
  const std::pair<std::string, std::string> other{"hearth.base", std::string(32, '0')};
  const std::string told = rewrite({diagonal, other});
  CHECK_THAT(told, ContainsSubstring("(its config names '" + c.base().directory() +
                                     "'); to apply it anyway"));
  AdapterReadOptions accept;
  accept.accept_other_base = true;
  CHECK(error_of([&] { read_adapter(copy, c.base(), accept); }).empty());
  CHECK_THAT(rewrite({diagonal, {"hearth.base", "x"}}),
             ContainsSubstring("expected a digest, found 'x'"));
  CHECK_THAT(rewrite({{"hearth.gate_up", "x"}}), ContainsSubstring("hearth.gate_up"));
  CHECK_THAT(rewrite({diagonal, {"hearth.ranks", "[1]"}}), ContainsSubstring("hearth.ranks"));
  for (const char* rank : {"-1", "1.5", "\"1\"", "18446744073709551615"}) {
    CHECK_THAT(rewrite({diagonal, {"hearth.ranks", R"({"lm_head": )" + std::string(rank) + "}"}}),
               ContainsSubstring("hearth.ranks: 'lm_head': expected a rank"));
  }
  const std::string ranks = R"({"model.layers.0.mlp.experts.1.down_proj": 0})";
  CHECK_THAT(rewrite({diagonal, {"hearth.ranks", ranks}}), ContainsSubstring("is not zero"));
  // A value where gate's ranks meet up's rows.
  const float value = 1;
  const auto& shape = named(tensors, kGateUpB).entry.shape;
  std::memcpy(named(tensors, kGateUpB).data.data() + 4 * (shape[1] - 1), &value, 4);
  CHECK_THAT(rewrite({diagonal}), ContainsSubstring("is not zero"));
}

TEST_CASE("adapters: foreign and missing files", "[adapter]") {
  const AdapterCase c;
  const auto after = [&](const std::function<void(const std::string&)>& change) {
    return c.after(change);
  };
  CHECK_THAT(after([](const auto& d) { fs::remove(d + kAdapterConfigFile); }),
             ContainsSubstring("not an adapter directory"));
  CHECK_THAT(after([](const auto& d) { fs::remove(d + kAdapterWeightsFile); }),
             ContainsSubstring("no adapter_model.safetensors"));
  CHECK_THAT(
      after([](const auto& d) { fs::rename(d + kAdapterWeightsFile, d + "/adapter_model.bin"); }),
      ContainsSubstring("pickle"));
  CHECK_THAT(
      after([](const auto& d) { write_text(d + kAdapterConfigFile, "{\"r\": 1, \"r\": 2}"); }),
      ContainsSubstring("r"));
  CHECK_FALSE(after([](const auto& d) { write_text(d + kAdapterWeightsFile, "short"); }).empty());
}
