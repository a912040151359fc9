// --policy aptmoe: what a run decides, what its journal says of it, and that a resume keeps the bits.
// Bits on all devices: test_same_bits.cpp.
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "train/same_bits.h"

namespace hearth::test {
namespace {

/// Full training with few slots, LoRA with slots for everything.
TrainConfig aptmoe_run(const SameBitsFixture& f, const std::string& out, const TrainedWith& with) {
  TrainConfig config = f.config_of(with, out);
  config.policy = "aptmoe";
  config.recompute = Recompute::none;
  const RunsOn on{.devices = 1, .host = "host", .least = !with.lora_dropout};
  config.devices = f.with_costs(f.list_of(config, on));
  config.recorded.push_back({"policy", "aptmoe", false});
  return config;
}

std::vector<Json> events_of(const std::string& journal, const std::string& name) {
  std::vector<Json> events;
  const std::string text = read_file(journal);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    Json event = parse_json(text.substr(at, end - at), journal);
    if (event.find("event")->as_string() == name) events.push_back(std::move(event));
    at = end + 1;
  }
  return events;
}

TEST_CASE("aptmoe: a full journal has each decision, with its tokens and reasons") {
  SameBitsFixture f;
  TrainConfig config = aptmoe_run(f, "full", {});
  config.all_decisions = true;
  REQUIRE(f.run(config) == ExitCode::done);
  const std::vector<Json> decisions = events_of(f.dir / "full/journal.jsonl", "decision");
  // Three steps, two layers with experts, and the groups of three micro-batches.
  REQUIRE(decisions.size() >= 6);
  std::set<std::string> places, reasons;
  for (const Json& decision : decisions) {
    CHECK(decision.find("micro_batch")->is_null());
    CHECK(decision.find("phase")->as_string() == "forward");
    CHECK(decision.find("device")->as_string() == "virtual:0");
    const JsonArray& tokens = decision.find("tokens")->as_array();
    const JsonArray& where = decision.find("where")->as_array();
    const JsonArray& why = decision.find("reason")->as_array();
    REQUIRE(tokens.size() == 6);
    REQUIRE(where.size() == 6);
    REQUIRE(why.size() == 6);
    for (size_t e = 0; e < 6; ++e) {
      CHECK(where[e].is_null() == (tokens[e].as_int() == 0));
      CHECK(why[e].is_null() == where[e].is_null());
      if (where[e].is_null()) continue;
      places.insert(where[e].as_string());
      reasons.insert(why[e].as_string());
    }
  }
  CHECK(places == std::set<std::string>{"host", "virtual:0"});
  CHECK(reasons.contains("loaded"));
  CHECK(reasons.contains("host-balance"));
  CHECK(events_of(f.dir / "full/journal.jsonl", "decisions").empty());
}

TEST_CASE("aptmoe: equal runs decide alike, and another equation decides otherwise") {
  SameBitsFixture f;
  const auto digests = [&](const std::string& out, bool printed) {
    TrainConfig config = aptmoe_run(f, out, {"olmoe", 0.0});
    config.printed_equation = printed;
    REQUIRE(f.run(config) == ExitCode::done);
    std::vector<std::string> list;
    for (const Json& event : events_of(f.dir / (out + "/journal.jsonl"), "decisions")) {
      list.push_back(event.find("digest")->as_string());
    }
    return list;
  };
  const std::vector<std::string> one = digests("one", false);
  CHECK(one.size() == 3);
  CHECK(digests("two", false) == one);
  CHECK(digests("printed", true) != one);
  CHECK(f.root("one") == f.root("printed"));
}

TEST_CASE("aptmoe: a run that was stopped goes on to the bits of one host") {
  SameBitsFixture f;
  for (const TrainedWith& with : {TrainedWith{}, TrainedWith{"qwen2_moe", 0.2}}) {
    TrainConfig whole = f.config_of(with, "whole" + with.family);
    REQUIRE(f.run(whole) == ExitCode::done);
    const std::string out = "parts" + with.family;
    TrainConfig parts = aptmoe_run(f, out, with);
    parts.out = f.dir / out;
    REQUIRE(f.run_until(parts, 1) == ExitCode::stopped);
    REQUIRE(f.run(parts) == ExitCode::done);
    CHECK(f.root(out) == f.root("whole" + with.family));
    CHECK(f.result(out) == f.result("whole" + with.family));
  }
}

TEST_CASE("aptmoe: needs a device, and the host beside it") {
  SameBitsFixture f;
  TrainConfig config = f.config_of({}, "x");
  config.policy = "aptmoe";
  for (const auto& [devices, part] : {std::pair("virtual", "add host"), {"host", "no device"}}) {
    config.devices = devices;
    const Raised refused = raised_by([&] { f.run(config); });
    INFO(refused.message);
    CHECK(refused.code == ExitCode::usage);
    CHECK(refused.says(part));
  }
}

}  // namespace
}  // namespace hearth::test
