// A PEFT directory: adapter_config.json and adapter_model.safetensors.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "hostile/hostile.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

using Change = std::function<void(const Place&)>;

const std::string kAdapterConfig = "adapter/adapter_config.json";
const std::string kAdapterWeights = "adapter/adapter_model.safetensors";
const std::string kConfigName = "adapter_config.json", kWeightsName = "adapter_model.safetensors";
const std::string kPrefix = "base_model.model.model.layers.0.";
const std::string kQ = kPrefix + "self_attn.q_proj.lora_A.weight";
const std::string kUp = kPrefix + "mlp.experts.1.up_proj.lora_B.weight";

/// adapter/ of a run on the place's model, on attention and experts.
void adapt(const Place& place, const std::string& layout = "per-expert") {
  const Outcome outcome =
      run_in(place, {"train", "--quiet", "--threads", "1", "run.yaml", "--method", "lora",
                     "--lora-r", "2", "--adapter-layout", layout, "--final-state", "off"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  fs::rename(place.path("run/adapter"), place.path("adapter"));
  fs::remove_all(place.path("run"));
}

/// adapter/ as a run left it, then changed. Runs once a layout.
Change adapter(Change change, const std::string& layout = "per-expert") {
  return [change = std::move(change), layout](const Place& place) {
    static std::map<std::string, std::pair<std::string, std::string>> made;
    if (!made.contains(layout)) {
      const Place other;
      adapt(other, layout);
      made[layout] = {other.read(kAdapterConfig), other.read(kAdapterWeights)};
    }
    fs::create_directory(place.path("adapter"));
    place.write(kAdapterConfig, made[layout].first);
    place.write(kAdapterWeights, made[layout].second);
    change(place);
  };
}

Change config_text_is(std::string text) {
  return adapter(
      [text = std::move(text)](const Place& place) { place.write(kAdapterConfig, text); });
}

/// A member with another value.
Change setting(const std::string& key, const std::string& raw) {
  return adapter([=](const Place& place) {
    Json config = parse_json(place.read(kAdapterConfig), "config");
    config[key] = parse_json(raw, "value");
    place.write(kAdapterConfig, config.dump());
  });
}

/// The header of the weights as JSON; the data stay.
Change header(const std::function<void(Json&)>& change, const std::string& layout = "per-expert") {
  return adapter(
      [=](const Place& place) {
        const std::string file = place.read(kAdapterWeights);
        uint64_t length = 0;
        std::memcpy(&length, file.data(), 8);
        Json json = parse_json(std::string_view(file).substr(8, length), "header");
        change(json);
        place.write(kAdapterWeights, raw_safetensors(json.dump(), file.substr(8 + length)));
      },
      layout);
}

Change renamed(const std::string& from, const std::string& to) {
  return header([=](Json& json) {
    for (auto& [name, entry] : json.as_object()) {
      if (name == from) name = to;
    }
  });
}

Change note(const std::string& key, const std::string& text) {
  return header([=](Json& json) { json["__metadata__"][key] = text; });
}

Change number_in(const std::string& tensor, float value) {
  return adapter([=](const Place& place) {
    std::string file = place.read(kAdapterWeights);
    uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    const Json json = parse_json(std::string_view(file).substr(8, length), "header");
    const uint64_t at = json.find(tensor)->find("data_offsets")->as_array()[0].as_uint();
    std::memcpy(file.data() + 8 + length + at, &value, sizeof value);
    place.write(kAdapterWeights, file);
  });
}

std::vector<std::string> words() {
  std::vector<std::string> all = eval_words();
  all.insert(all.end(), {"--adapter", "adapter"});
  return all;
}

}  // namespace

TEST_CASE("hostile: an adapter's settings") {
  const std::string& name = kConfigName;
  run_table("adapter_config.json",
            {
                {"good", adapter([](const Place&) {}), {}, 0},
                {"a setting without effect", setting("inference_mode", "false"), {}, 0},
                {"one that is off", setting("use_dora", "false"), {}, 0},
                {"not there", adapter([](const Place& p) { p.remove(kAdapterConfig); }), {name}},
                {"no bytes", config_text_is(""), {name}},
                {"no JSON", config_text_is("r: 8"), {name}},
                {"a list", config_text_is("[]"), {name}},
                {"a key twice", config_text_is("{\"r\": 2, \"r\": 2}"), {name, "duplicate"}},
                {"100,000 brackets", config_text_is(std::string(100'000, '[')), {name, "nested"}},
                {"a NUL byte", config_text_is(std::string("{\"r\": \0}", 9)), {name, "NUL"}},
                {"no UTF-8", config_text_is("{\"r\": \"\xc3\"}"), {name, "UTF-8"}},
                {"nothing selected", config_text_is("{\"peft_type\": \"LORA\"}"), {name, "target"}},
                {"a file of a terabyte",
                 adapter([](const Place& p) { p.sparse(kAdapterConfig, "{", uint64_t{1} << 40); }),
                 {name}},
                {"another method", setting("peft_type", "\"LOHA\""), {name, "peft_type"}},
                {"another task", setting("task_type", "\"SEQ_CLS\""), {name, "task_type"}},
                {"dora", setting("use_dora", "true"), {name, "use_dora"}},
                {"biases", setting("bias", "\"all\""), {name, "bias"}},
                {"a changed base", setting("init_lora_weights", "\"pissa\""), {name, "pissa"}},
                {"an unknown setting", setting("use_magic", "1"), {name, "use_magic"}},
                {"an escape in a setting", setting("\x1b[2J" + std::string(300, 'x'), "1"), {name}},
                {"no rank", setting("r", "0"), {name, "r"}},
                {"a rank of 1e300", setting("r", "1e300"), {name, "r"}},
                {"a rank past 64 bits",
                 setting("r", "18446744073709551616"),
                 {name, "r is", "18446744073709551616"}},
                {"a rank that the tensors do not have", setting("r", "3"), {"rank_pattern"}},
                {"no alpha", setting("lora_alpha", "0"), {name, "lora_alpha"}},
                {"dropout of 2", setting("lora_dropout", "2"), {name, "lora_dropout"}},
                {"a rank for some", setting("rank_pattern", "{\"q_proj\": 7}"), {"rank_pattern"}},
                {"a pattern that is none", setting("rank_pattern", "{\"(\": 2}"), {name}},
                {"a long pattern that is none",
                 setting("rank_pattern", "{\"(" + std::string(5000, 'x') + "\": 2}"),
                 {name, "rank_pattern"}},
                {"a pattern without end",
                 setting("target_modules", "\"(a|a)*(a|a)*(a|a)*b.*q_proj.*|(.*.*.*.*.*)*x\""),
                 {name, "steps"}},
                {"targets that are too few", setting("target_modules", "[\"q_proj\"]"), {name}},
                {"targets that are too many",
                 setting("target_modules", "\".*(_proj|gate|lm_head).*\""),
                 {name}},
                {"targets that are numbers", setting("target_modules", "[1]"), {name}},
                {"a long target that is not there",
                 setting("target_modules", "[\"" + std::string(5000, 'y') + "\"]"),
                 {name}},
                {"a layer alone", setting("layers_to_transform", "[0]"), {name}},
                {"layers by text", setting("layers_to_transform", "[\"x\"]"), {name, "layers"}},
                {"saved modules of another model",
                 setting("modules_to_save", "[\"score\"]"),
                 {name, "modules_to_save names 'score'"}},
                {"saved modules that are not there",
                 setting("modules_to_save", "[\"lm_head\"]"),
                 {name, "modules_to_save"}},
            },
            words());
  run_table(
      "adapter_config.json, kind",
      [] {
        std::vector<Case> table = not_a_file(kAdapterConfig);
        for (Case& row : table) row.plant = adapter(row.plant);
        return table;
      }(),
      words());
}

TEST_CASE("hostile: an adapter's weights") {
  const std::string& name = kWeightsName;
  run_table(
      "adapter_model.safetensors",
      {
          {"good, fused", adapter([](const Place&) {}, "fused"), {}, 0},
          {"not there", adapter([](const Place& p) { p.remove(kAdapterWeights); }), {name}},
          {"a pickle instead",
           adapter([](const Place& p) {
             fs::rename(p.path(kAdapterWeights), p.path("adapter/adapter_model.bin"));
           }),
           {"pickle"}},
          {"cut off",
           adapter([](const Place& p) {
             const std::string file = p.read(kAdapterWeights);
             p.write(kAdapterWeights, file.substr(0, file.size() - 4));
           }),
           {name}},
          {"a header longer than the file",
           adapter([](const Place& p) { p.write(kAdapterWeights, std::string(8, '\x7f')); }),
           {name}},
          {"no tensors",
           adapter([](const Place& p) { p.write(kAdapterWeights, raw_safetensors("{}", "")); }),
           {name}},
          {"the other half missing",
           renamed(kQ, kPrefix + "self_attn.k_proj.lora_A.weight"),
           {name, "self_attn"}},
          {"an unknown tensor", renamed(kQ, "ghost.weight"), {name, "ghost.weight"}},
          {"a layer that is not there",
           renamed(kQ, "base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight"),
           {name, "layers.9"}},
          {"an expert that is not there",
           renamed(kUp, kPrefix + "mlp.experts.99.up_proj.lora_B.weight"),
           {name, "experts.99"}},
          {"another shape",
           header([](Json& json) {
             json[kQ]["shape"] = JsonArray{int64_t{16}, int64_t{2}};
           }),
           {name, kQ, "shape"}},
          {"one dimension",
           header([](Json& json) { json[kQ]["shape"] = JsonArray{int64_t{32}}; }),
           {name, kQ}},
          {"integers", header([](Json& json) { json[kQ]["dtype"] = "I32"; }), {name, kQ, "I32"}},
          {"no number", number_in(kUp, std::nanf("")), {name, kUp, "not finite"}},
          {"infinity", number_in(kQ, INFINITY), {name, kQ, "not finite"}},
          {"of another base",
           note("hearth.base", std::string(32, '0')),
           {name, "--accept-other-base"}},
          {"a base that is no digest", note("hearth.base", "x"), {name, "hearth.base"}},
          {"ranks that are no object", note("hearth.ranks", "[1]"), {name, "hearth.ranks"}},
          {"ranks below 0",
           note("hearth.ranks", "{\"model.layers.0.self_attn.q_proj\": -1}"),
           {name, "hearth.ranks"}},
          {"what is noted as zero is not",
           note("hearth.ranks", "{\"model.layers.0.self_attn.q_proj\": 0}"),
           {name, kQ, "not zero"}},
          {"fused by an unknown program",
           header([](Json& json) { json["__metadata__"] = JsonObject{}; }, "fused"),
           {name, "--adapter-layout fused"}},
      },
      words());
  run_table(
      "adapter_model.safetensors, kind",
      [] {
        std::vector<Case> table = not_a_file(kAdapterWeights);
        for (Case& row : table) row.plant = adapter(row.plant);
        return table;
      }(),
      words());
}
