// Files of saved states: damaged, of another kind, and whole with absurd content under right digests.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>

#include "hostile/saved_state.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

const std::string kWeights = kState + "/weights.safetensors";
const Words kVerify{"verify", kState};
const Words kTrain{"train", "--quiet", "--threads", "1", "run.yaml"};

Case component_row(const std::string& name, std::function<void(const Place&)> plant, Words says,
                   int code = 4) {
  return {name, std::move(plant), std::move(says), code};
}

/// The weights' file with another text of its header; the data stay.
std::function<void(const Place&)> header(const std::string& from, const std::string& to) {
  return component("weights", [=](std::string& file) {
    uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    std::string text = file.substr(8, length);
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    file = raw_safetensors(text.replace(at, from.size(), to), file.substr(8 + length));
  });
}

/// One f32 of a component's data: the first (0) or the last (-1), or of that place.
std::function<void(const Place&)> element(const std::string& name, int64_t at, uint32_t bits) {
  return component(name, [=](std::string& file) {
    uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    const size_t place = at < 0 ? file.size() - 4 : 8 + length + 4 * static_cast<size_t>(at);
    std::memcpy(file.data() + place, &bits, 4);
  });
}

Case progress(const std::string& name, const std::string& text, Words says = {}, int code = 4) {
  if (code == 4) says.push_back(kState + "/progress.safetensors");
  return component_row(
      name, component("progress", [=](std::string& file) { file = progress_file(text); }),
      std::move(says), code);
}

std::string counters(const std::string& key, const std::string& raw) {
  std::string text = "{";
  for (const std::string name : {"step", "updates", "tokens", "trained_tokens", "skipped",
                                 "skipped_in_a_row", "epoch", "sequence"}) {
    if (name == key && raw.empty()) continue;
    text += (text.size() > 1 ? ", \"" : "\"") + name + "\": ";
    text += name == key ? raw : name == "step" || name == "updates" ? "1" : "0";
  }
  return text + "}";
}

}  // namespace

TEST_CASE("hostile: files of a saved state") {
  const std::string file = "weights.safetensors";
  const auto with = [](std::string bytes) {
    return state([=](const Place& p) { p.write(kWeights, bytes); });
  };
  std::vector<Case> table = {
      component_row("good", with_state, {}, 0),
      component_row("none", state([](const Place& p) { p.remove(kWeights); }), {file}),
      component_row("no bytes", with(""), {file, "0 bytes"}),
      component_row("half", state([](const Place& p) {
                      p.write(kWeights, p.read(kWeights).substr(0, 30'000));
                    }),
                    {file, "30000 bytes"}),
      component_row("one byte more",
                    state([](const Place& p) { p.write(kWeights, p.read(kWeights) + "x"); }),
                    {file, "bytes"}),
      component_row("the first moments", state([](const Place& p) {
                      p.write(kWeights, p.read(kState + "/moment1.safetensors"));
                    }),
                    {file, "damaged"}),
      component_row("1 TB of holes",
                    state([](const Place& p) { p.sparse(kWeights, "", uint64_t{1} << 40); }),
                    {file, "1099511627776"}),
      component_row("a link to the same bytes is read", state([](const Place& p) {
                      fs::rename(p.path(kWeights), p.path("elsewhere"));
                      p.link("../../../elsewhere", kWeights);
                    }),
                    {}, 0),
      component_row("a link to another component",
                    state([](const Place& p) { p.link("moment1.safetensors", kWeights); }),
                    {file, "damaged"}),
  };
  for (Case& kind : not_a_file(kWeights))
    table.push_back(component_row(kind.name, state(kind.plant), {file}));
  run_table("state, file, verify", table, kVerify);
  run_table("state, file, train", {table[3], table[5], table[9 + 3], table[9 + 5], table[9 + 7]},
            kTrain);
  const auto instead = [](std::function<void(const Place&)> plant) {
    return [plant = std::move(plant)](const Place& p) {
      fs::create_directories(p.path("run/state"));
      plant(p);
    };
  };
  const std::string at = "step-00000001";
  std::vector<Case> kinds = {
      component_row("a file", instead([](const Place& p) { p.write(kState, "x"); }),
                    {at, "directory"}),
      component_row("a FIFO", instead([](const Place& p) { p.fifo(kState); }), {at, "directory"}),
      component_row("a link to itself",
                    instead([](const Place& p) { p.link("step-00000001", kState); }), {at}),
      component_row("a link to nothing", instead([](const Place& p) { p.link("nowhere", kState); }),
                    {at}),
      component_row("a link to a device",
                    instead([](const Place& p) { p.link("/dev/zero", kState); }), {at}),
  };
  run_table("state, kind, train", {kinds[1], kinds[2]}, kTrain);
  for (Case& kind : kinds) kind.code = 3;  // as it is named
  run_table("state, kind, verify", kinds, kVerify);
  run_table(
      "state, entries, verify",
      {component_row("none", instead([](const Place& p) { fs::create_directory(p.path(kState)); }),
                     {at, "manifest.json"}),
       component_row("5,000 files more are no harm", state([](const Place& p) {
                       for (int i = 0; i < 5'000; ++i)
                         p.write(kState + "/f" + std::to_string(i), "");
                     }),
                     {}, 0)},
      kVerify);
}

TEST_CASE("hostile: components under right digests") {
  const std::string file = "weights.safetensors", norm = "model.norm.weight";
  const auto bytes = [&](const std::string& content) {
    return component("weights", [=](std::string& text) { text = content; });
  };
  const auto length = [](uint64_t n) {
    std::string text(8, '\0');
    std::memcpy(text.data(), &n, 8);
    return text + "{}";
  };
  run_table("components, verify",
            {
                component_row("no bytes", bytes(""), {file}),
                component_row("a header of 0 bytes", bytes(length(0)), {file}),
                component_row("a header of 2^63 bytes", bytes(length(uint64_t{1} << 63)),
                              {file, "length"}),
                component_row("a lone brace", bytes(raw_safetensors("{", "")), {file}),
                component_row(
                    "1,000,000 brackets",
                    bytes(raw_safetensors("{\"a\":{\"shape\":" + std::string(1'000'000, '['), "")),
                    {file}),
                component_row("an unknown type", header("\"F32\"", "\"F33\""), {file, "F33"}),
                component_row("a negative size", header("\"shape\":[16]", "\"shape\":[-16]"),
                              {file, "shape"}),
                component_row("a size of 2^62",
                              header("\"shape\":[16]", "\"shape\":[4611686018427387904]"), {file}),
                component_row("offsets past the end",
                              header("\"data_offsets\":[0,", "\"data_offsets\":[9,"), {file}),
                component_row(
                    "a tensor twice",
                    header("\"" + norm + "\":",
                           "\"" + norm +
                               "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},\"" +
                               norm + "\":"),
                    {file, norm, "twice"}),
                component_row("NaN in the first weight", element("weights", 0, 0x7fc00000),
                              {file, "finite", "0"}),
                component_row("infinity in the last weight", element("weights", -1, 0x7f800000),
                              {file, "finite"}),
                component_row("minus infinity in a weight", element("weights", 20, 0xff800000),
                              {file, "finite"}),
            },
            kVerify);
  run_table("components, train",
            {
                component_row("another name", header(norm, "model.form.weight"), {file, norm}),
                component_row("another shape", header("\"shape\":[16]", "\"shape\":[4,4]"),
                              {file, "[4, 4]"}),
                component_row("another type of the same size", header("\"F32\"", "\"I32\""),
                              {file, "I32"}),
                component_row("a component that is not there",
                              manifest([](Json& m) { m["files"].as_array().pop_back(); }),
                              {"manifest.json"}),
                component_row("NaN in the first weight", element("weights", 0, 0x7fc00000),
                              {file, "finite"}),
                component_row("infinity in the last weight", element("weights", -1, 0x7f800000),
                              {file, "finite"}),
            },
            kTrain);
}

TEST_CASE("hostile: counters of a saved state") {
  std::vector<Case> table = {
      component_row(
          "good",
          component("progress", [](std::string& f) { f = progress_file(counters("", "")); }), {},
          0),
      progress("no bytes", ""),
      progress("no JSON", "step 1"),
      progress("a list", "[]"),
      progress("100,000 brackets", std::string(100'000, '[')),
      progress("another step", counters("step", "2"), {"step"}),
      progress("tokens 2^63", counters("tokens", "9223372036854775808"), {"tokens"}),
      progress("no epoch", counters("epoch", ""), {"epoch"}),
      progress("epoch 2^62", counters("epoch", "4611686018427387904"), {"epoch"}, 3),
      progress("sequence -1", counters("sequence", "-1"), {"sequence"}),
      progress("sequence 2^62", counters("sequence", "4611686018427387904"), {"sequence"}, 3),
      progress("updates 1.5", counters("updates", "1.5"), {"updates"}),
      progress("updates 2", counters("updates", "2"), {"updates"}),
      progress("skipped_in_a_row 2^62", counters("skipped_in_a_row", "4611686018427387904"),
               {"skipped"}),
  };
  run_table("counters, train", table, kTrain);
  run_table(
      "what the run recorded, train",
      {
          component_row("nothing", manifest([](Json& m) { m["extra"] = JsonObject{}; }),
                        {"manifest", "options"}),
          component_row("a list", manifest([](Json& m) { m["extra"] = JsonArray{}; }),
                        {"manifest", "extra: expected an object"}),
          component_row("options of a number", manifest([](Json& m) { m["extra"]["options"] = 1; }),
                        {"manifest", "options"}),
          component_row("no model", manifest([](Json& m) { m["extra"]["model"] = nullptr; }),
                        {"manifest", "model"}),
          component_row("another seed",
                        manifest([](Json& m) { m["extra"]["options"]["seed"] = "1"; }), {"--seed"},
                        2),
          component_row("another file of data", manifest([](Json& m) {
                          m["extra"]["data"].as_array()[0]["xxh3"] = std::string(32, '0');
                        }),
                        {"rows.jsonl"}, 3),
      },
      kTrain);
}
