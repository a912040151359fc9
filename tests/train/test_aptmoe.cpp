// --policy aptmoe: what a run decides, what its journal says of it, and that a resume keeps the bits.
// Bits on all devices: test_same_bits.cpp.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>

#include "state/saved_state.h"
#include "train/aptmoe_runs.h"

namespace hearth::test {
namespace {

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
    return digests_in(events_of(f.dir / (out + "/journal.jsonl"), "decisions"));
  };
  const auto one = digests("one", false);
  CHECK(one.size() == 3);
  CHECK(digests("two", false) == one);
  CHECK(digests("printed", true) != one);
  CHECK(f.root("one") == f.root("printed"));
}

TEST_CASE("aptmoe: a step of a pipeline begins with updates of one layer after the other") {
  SameBitsFixture f;
  TrainConfig config = f.config_of({"olmoe", {}}, "x");
  config.policy = "aptmoe";
  config.recompute = Recompute::none;
  config.devices = f.with_costs("2xvirtual,host");
  unbind_thread();
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  const Schedule& list = run.model.plan.train->schedule;
  REQUIRE((list.rotates && list.decides));
  REQUIRE(list.places[kHostPlace].lanes == 2);
  std::map<BlockId, int> updated;
  std::vector<const Task*> updates;
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::update) continue;
    updates.push_back(&task);
    for (const BlockUse& use : task.blocks) {
      for (BlockId b = use.begin; b < use.end; ++b) ++updated[b];
    }
  }
  CHECK(updated.size() == run.model.table.blocks().size());
  for (const auto& [block, times] : updated) CHECK(times == 1);
  // The embedding is one block. Both streams of the host update the first layer.
  REQUIRE(updates.size() > 3);
  CHECK(updates[0]->layer == -1);
  CHECK(updates[1]->layer == 0);
  CHECK(updates[2]->layer == 0);
  CHECK(updates[1]->stream != updates[2]->stream);
  CHECK(updates[3]->layer == 1);
}

TEST_CASE("aptmoe: a run that was stopped repeats decisions and bits") {
  SameBitsFixture f;
  for (const TrainedWith& with : {TrainedWith{}, TrainedWith{"qwen2_moe", 0.2}}) {
    TrainConfig host = f.config_of(with, "host" + with.family);
    REQUIRE(f.run(host) == ExitCode::done);
    const auto config = [&](const std::string& out) {
      TrainConfig c = aptmoe_run(f, out + with.family, with);
      c.out = f.dir / (out + with.family);
      return c;
    };
    const auto digests = [&](const TrainConfig& c) {
      return digests_in(events_of(c.out + "/journal.jsonl", "decisions"));
    };
    const TrainConfig whole = config("whole"), parts = config("parts");
    REQUIRE(f.run(whole) == ExitCode::done);
    REQUIRE(f.run_until(parts, 1) == ExitCode::stopped);
    REQUIRE(f.run(parts) == ExitCode::done);
    CHECK(digests(whole).size() == 3);
    CHECK(digests(parts) == digests(whole));
    CHECK(f.root("parts" + with.family) == f.root("host" + with.family));
    CHECK(f.result("parts" + with.family) == f.result("host" + with.family));
    // The past of decisions is in the manifest, and no part of the root.
    const std::string last = parts.out + "/state/step-00000003";
    CHECK(open_state(last).extra.find("decisions") != nullptr);
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
