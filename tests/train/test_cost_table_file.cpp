// Reading cost tables: what the format allows, and every refusal, with the file's name.
#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>
#include <string>

#include "base/json.h"
#include "base/output_file.h"
#include "setup/cost_table_file.h"
#include "support/raises.h"
#include "support/temporary_directory.h"

namespace hearth {
namespace {

using test::raised_by;

const char kTable[] = R"({
  "format": "hearth-costs-1", "device": "cuda:0", "machine": "a workstation",
  "made": "2026-11-23T10:00:00Z",
  "entries": [
    {"kind": "attention", "phase": "forward", "dtype": "f32", "cores": 4,
     "shape": {"hidden": 64, "width": 32}, "units": [64, 128], "pairs": [2080, 8256],
     "seconds": [1e-3, 3e-3]},
    {"kind": "E", "phase": "backward", "dtype": "bf16", "units": [1, 8], "seconds": [0, 0.5]}],
  "links": [{"link": "host->cuda:0", "bytes_per_s": 2.5e10, "latency_s": 1e-5, "together": 2e10}]})";

CostTable parse(const Json& json) { return parse_cost_table(json.dump(), "costs.json"); }

/// Whether the table is refused after a change, with the file's name and `what`.
template <class Change>
bool is_refused(const std::string& what, const Change& change) {
  Json json = parse_json(kTable, "table");
  change(json);
  const auto raised = raised_by([&] { parse(json); });
  INFO(raised.message << " / " << what);
  CHECK(raised.message.starts_with("costs.json: "));
  return raised.code == ExitCode::input && raised.says(what);
}

/// Of the first entry.
bool is_refused_with(const std::string& what, const std::string& key, const Json& value) {
  return is_refused("entries[0]: " + what,
                    [&](Json& json) { json["entries"].as_array()[0][key] = value; });
}

void take_out(Json& object, const std::string& key) {
  std::erase_if(object.as_object(), [&](const auto& member) { return member.first == key; });
}

Json& first(Json& json, const char* list) { return json[list].as_array()[0]; }

TEST_CASE("cost table file: every field is read") {
  const CostTable table = parse_cost_table(kTable, "costs.json");
  REQUIRE(table.entries().size() == 2);
  const CostEntry& attention = table.entries()[0];
  CHECK(attention.kind == TaskKind::attention);
  CHECK(attention.phase == Phase::forward);
  CHECK(attention.dtype == Compute::f32);
  CHECK(attention.cores == 4);
  CHECK(attention.shape == CostShape{64, 32});
  CHECK(attention.units == std::vector<int64_t>{64, 128});
  CHECK(attention.pairs == std::vector<int64_t>{2080, 8256});
  CHECK(attention.seconds == std::vector<double>{1e-3, 3e-3});
  const CostEntry& experts = table.entries()[1];
  CHECK(experts.kind == TaskKind::experts);
  CHECK(experts.phase == Phase::backward);
  CHECK(experts.dtype == Compute::bf16);
  CHECK_FALSE(experts.cores);
  CHECK_FALSE(experts.shape);
  CHECK(experts.pairs.empty());
  const CostLink* link = table.link_to("cuda:0");
  REQUIRE(link != nullptr);
  CHECK(link->bytes_per_s == 2.5e10);
  CHECK(link->latency_s == 1e-5);
  CHECK(link->together == 2e10);
}

TEST_CASE("cost table file: all kinds and phases, and letters for five kinds") {
  const std::pair<const char*, TaskKind> names[] = {
      {"embed", TaskKind::embed},     {"attention", TaskKind::attention},
      {"mlp", TaskKind::mlp},         {"dispatch", TaskKind::dispatch},
      {"experts", TaskKind::experts}, {"combine", TaskKind::combine},
      {"head", TaskKind::head},       {"norm", TaskKind::norm},
      {"update", TaskKind::update},   {"A", TaskKind::attention},
      {"S", TaskKind::mlp},           {"D", TaskKind::dispatch},
      {"E", TaskKind::experts},       {"C", TaskKind::combine}};
  for (const auto& [name, kind] : names) {
    for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward}) {
      Json json = parse_json(kTable, "table");
      json["entries"].as_array().resize(1);
      take_out(first(json, "entries"), "pairs");
      first(json, "entries")["kind"] = name;
      first(json, "entries")["phase"] = name_of(phase);
      const CostTable table = parse(json);
      CHECK(table.entries().front().kind == kind);
      CHECK(table.entries().front().phase == phase);
    }
  }
  // A letter is the same entry as the word.
  CHECK(is_refused("attention forward twice", [](Json& json) {
    Json entry = first(json, "entries");
    entry["kind"] = "A";
    json["entries"].push_back(entry);
  }));
}

TEST_CASE("cost table file: each required key, no unknown key, no duplicate key") {
  for (const char* key : {"format", "device", "machine", "made", "entries", "links"}) {
    CHECK(is_refused(std::string(key) + " is missing", [&](Json& json) { take_out(json, key); }));
    CHECK(is_refused(key, [&](Json& json) { json[key] = nullptr; }));
    CHECK(is_refused(key, [&](Json& json) { json[key] = true; }));
  }
  for (const char* key : {"kind", "phase", "dtype", "units", "seconds"}) {
    CHECK(is_refused("entries[0]: " + std::string(key) + " is missing",
                     [&](Json& json) { take_out(first(json, "entries"), key); }));
    CHECK(is_refused_with(key, key, nullptr));
    CHECK(is_refused_with(key, key, 3));
  }
  for (const char* key : {"link", "bytes_per_s", "latency_s", "together"}) {
    CHECK(is_refused("links[0]: " + std::string(key) + " is missing",
                     [&](Json& json) { take_out(first(json, "links"), key); }));
    CHECK(is_refused("links[0]: " + std::string(key),
                     [&](Json& json) { first(json, "links")[key] = nullptr; }));
    CHECK(is_refused("links[0]: " + std::string(key),
                     [&](Json& json) { first(json, "links")[key] = true; }));
  }
  CHECK(is_refused("unknown key 'notes'", [](Json& json) { json["notes"] = "x"; }));
  CHECK(is_refused_with("unknown key 'place'", "place", "host"));
  CHECK(is_refused("links[0]: unknown key 'alone'",
                   [](Json& json) { first(json, "links")["alone"] = 1; }));
  CHECK(is_refused_with("shape: unknown key 'rank'", "shape",
                        JsonObject{{"hidden", 1}, {"width", 1}, {"rank", 1}}));
  for (const char* key : {"hidden", "width"}) {
    CHECK(is_refused("entries[0]: shape: " + std::string(key) + " is missing",
                     [&](Json& json) { take_out(first(json, "entries")["shape"], key); }));
  }
  std::string text = kTable;
  text.replace(text.find("\"cores\": 4"), 10, "\"cores\": 4, \"cores\": 4");
  CHECK(raised_by([&] { parse_cost_table(text, "costs.json"); }).says("costs.json: "));
  CHECK(raised_by([&] { parse_cost_table(text, "costs.json"); }).code == ExitCode::input);
}

TEST_CASE("cost table file: values of the wrong type or range are refused") {
  CHECK(is_refused("format: expected hearth-costs-1, found 'hearth-costs-2'",
                   [](Json& json) { json["format"] = "hearth-costs-2"; }));
  CHECK(is_refused_with("kind: unknown kind 'clip'", "kind", "clip"));
  CHECK(is_refused_with("kind: unknown kind 'a'", "kind", "a"));
  CHECK(is_refused_with("phase: expected forward, recompute or backward", "phase", "Forward"));
  CHECK(is_refused_with("dtype: expected f32 or bf16", "dtype", "f64"));
  for (const Json& wrong : {Json(1.5), Json("4"), Json(nullptr), Json(0), Json(-1), Json(true)}) {
    CHECK(is_refused_with("cores: expected a whole number", "cores", wrong));
    CHECK(is_refused_with("units: expected", "units", JsonArray{wrong, 128}));
    CHECK(is_refused_with("pairs: expected", "pairs", JsonArray{wrong, 8256}));
  }
  CHECK(is_refused_with("cores: expected a whole number", "cores", uint64_t{1} << 63));
  CHECK(is_refused_with("shape: expected an object", "shape", JsonArray{64, 32}));
  CHECK(is_refused_with("shape", "shape", JsonObject{{"hidden", 0}, {"width", 1}}));
  CHECK(is_refused_with("units: expected a list", "units", 64));
  CHECK(is_refused_with("pairs: expected as many as units", "pairs", JsonArray{}));
  CHECK(is_refused_with("seconds: expected a number", "seconds", JsonArray{"1", 2}));
  CHECK(is_refused_with("seconds: expected finite numbers", "seconds", JsonArray{-1, 2}));
  CHECK(is_refused_with("seconds: expected numbers that never fall", "seconds", JsonArray{2, 1}));
  CHECK(is_refused("expected an object", [](Json& json) { json = JsonArray{}; }));
  CHECK(is_refused("entries[0]: expected an object",
                   [](Json& json) { json["entries"].as_array()[0] = 1; }));
  // Numbers beyond a double's range.
  std::string text = kTable;
  text.replace(text.find("3e-3"), 4, "1e999");
  CHECK(raised_by([&] { parse_cost_table(text, "costs.json"); }).code == ExitCode::input);
}

TEST_CASE("cost table file: only a regular file of at most 16 MiB is read") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/costs.json";
  const auto refused = [&](const std::string& text) {
    write_file_atomically(path, text);
    const auto raised = raised_by([&] { read_cost_table(path); });
    CHECK(raised.says(path));
    return raised.code == ExitCode::input;
  };
  std::string text = kTable;
  text.resize(kMaxCostTableBytes, ' ');
  write_file_atomically(path, text);
  CHECK(read_cost_table(path).digest() == parse_cost_table(kTable, "x").digest());
  CHECK(refused(text + " "));
  CHECK(refused(""));
  CHECK(refused("{"));
  CHECK(refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"));
  CHECK(raised_by([&] { read_cost_table(directory.path()); }).code == ExitCode::input);
  CHECK(raised_by([&] { read_cost_table(path + ".absent"); }).code == ExitCode::input);
}

/// A table of random entries that the format allows.
CostTable random_table(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto any = [&] {  // any positive double
    while (true) {
      const double x = std::bit_cast<double>(random() >> 1);
      if (std::isfinite(x) && x > 0) return x;
    }
  };
  std::vector<CostEntry> entries;
  for (const TaskKind kind : {TaskKind::experts, TaskKind::attention, TaskKind::update}) {
    for (int64_t cores = 0; cores < 3; ++cores) {
      CostEntry e;
      e.kind = kind;
      e.phase = random() % 2 ? Phase::backward : Phase::recompute;
      e.dtype = random() % 2 ? Compute::f32 : Compute::bf16;
      if (cores > 0) e.cores = cores;
      if (random() % 2) e.shape = CostShape{1 + static_cast<int64_t>(random() % 9), 7};
      int64_t units = 0;
      for (size_t i = 0; i < 1 + random() % 5; ++i) {
        e.units.push_back(units += 1 + static_cast<int64_t>(random() >> 8));
        if (kind == TaskKind::attention) e.pairs.push_back(units);
        e.seconds.push_back(i == 0 && random() % 3 == 0 ? 0 : any());
      }
      std::sort(e.seconds.begin(), e.seconds.end());
      entries.push_back(e);
    }
  }
  return {entries, {{"host->a \"b\"", any(), any(), any()}, {"a->host", any(), 0, any()}}};
}

TEST_CASE("cost table file: what was written is read, to the bit") {
  const test::TemporaryDirectory directory;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    INFO(seed);
    const CostTable table = random_table(seed);
    const CostTableOrigin origin{"cuda:0", JsonObject{{"cpu", "x"}}, 1.5e9};
    write_cost_table(directory / "t.json", table, origin);
    const CostTableFile again = read_cost_table_file(directory / "t.json");
    CHECK(again.table.digest() == table.digest());
    REQUIRE(again.table.entries().size() == table.entries().size());
    for (size_t i = 0; i < table.entries().size(); ++i) {
      const CostEntry &a = table.entries()[i], &b = again.table.entries()[i];
      CHECK((a.kind == b.kind && a.phase == b.phase && a.dtype == b.dtype && a.cores == b.cores));
      CHECK((a.shape == b.shape && a.units == b.units && a.pairs == b.pairs));
      CHECK(a.seconds == b.seconds);
    }
    for (size_t i = 0; i < table.links().size(); ++i) {
      const CostLink &a = table.links()[i], &b = again.table.links()[i];
      CHECK((a.link == b.link && a.bytes_per_s == b.bytes_per_s && a.latency_s == b.latency_s &&
             a.together == b.together));
    }
    CHECK(again.origin.device == "cuda:0");
    CHECK(again.origin.machine.find("cpu")->as_string() == "x");
    CHECK(again.origin.made.as_double() == 1.5e9);
  }
}

}  // namespace
}  // namespace hearth
