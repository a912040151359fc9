// --phases: which loads come ahead of their use. Runs keep their bits, and say what was foretold.
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "train/aptmoe_runs.h"

namespace hearth::test {
namespace {

const std::vector<LoadPhases> kSomePhases = {{true, true, true},   {true, false, false},
                                             {false, true, false}, {false, false, true},
                                             {true, true, false},  {false, true, true}};

/// The lines of metrics.jsonl.
std::vector<Json> metrics_of(const std::string& run) {
  std::vector<Json> lines;
  const std::string path = run + "/metrics.jsonl", text = read_file(path);
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(parse_json(text.substr(at, end - at), path));
  }
  return lines;
}

TEST_CASE("load phases: the bits of one host, whichever run") {
  SameBitsFixture f;
  const TrainedWith with{"olmoe", {}};
  TrainConfig host = f.config_of(with, "host");
  REQUIRE(f.run(host) == ExitCode::done);
  std::set<std::string> digests;
  for (size_t i = 0; i < kSomePhases.size(); ++i) {
    const std::string out = "phases" + std::to_string(i);
    TrainConfig config = aptmoe_run(f, out, with);
    config.foresight.phases = kSomePhases[i];
    REQUIRE(f.run(config) == ExitCode::done);
    CHECK(f.root(out) == f.root("host"));
    CHECK(f.result(out) == f.result("host"));
    for (const auto& [step, digest] :
         digests_in(events_of(config.out + "/journal.jsonl", "decisions"))) {
      if (step == 3) digests.insert(digest);
    }
  }
  CHECK(digests.size() > 1);  // foretold tokens divide otherwise than real ones
}

TEST_CASE("load phases: a run on two devices, with its micro-batches one by one") {
  SameBitsFixture f;
  const TrainedWith with{"qwen3_moe", {}};
  TrainConfig host = f.config_of(with, "host");
  REQUIRE(f.run(host) == ExitCode::done);
  for (size_t i = 0; i < 3; ++i) {
    const std::string out = "phases" + std::to_string(i);
    TrainConfig config = f.config_of(with, out);
    config.policy = "aptmoe";
    config.recompute = Recompute::none;
    config.foresight.phases = kSomePhases[i];
    config.recorded.push_back({"policy", "aptmoe", false});
    const RunsOn on{.devices = 2, .host = "host", .least = i != 1};
    config.devices = f.with_costs(f.list_of(config, on));
    REQUIRE(f.run(config) == ExitCode::done);
    CHECK(f.root(out) == f.root("host"));
  }
}

TEST_CASE("load phases: what was foretold is in the metrics, from the second step on") {
  SameBitsFixture f;
  TrainConfig config = aptmoe_run(f, "run", {"olmoe", 0.0});
  config.foresight.phases.inter_expert = false;  // so that all loads are foretold
  REQUIRE(f.run(config) == ExitCode::done);
  const std::vector<Json> lines = metrics_of(config.out);
  REQUIRE(lines.size() == 3);
  for (const char* measure : {"token_hit", "least_quarter", "byte_hit"}) {
    CHECK(lines[0].find("prediction")->find(measure)->is_null());
    for (size_t i = 1; i < 3; ++i) {
      const Json& share = *lines[i].find("prediction")->find(measure);
      REQUIRE_FALSE(share.is_null());
      CHECK(share.as_double() >= 0);
      CHECK(share.as_double() <= 1);
    }
  }
  CHECK(lines[2].find("prediction")->find("byte_hit")->as_double() == 1);
  TrainConfig host = f.config_of({"olmoe", 0.0}, "host");
  REQUIRE(f.run(host) == ExitCode::done);
  CHECK(metrics_of(host.out)[2].find("prediction") == nullptr);
}

TEST_CASE("load phases: a stopped run goes on with what it foretold, and other phases may follow") {
  SameBitsFixture f;
  const TrainedWith with{"olmoe", 0.0};
  const auto config = [&](const std::string& out) {
    TrainConfig c = aptmoe_run(f, out, with);
    c.foresight.phases.inter_expert = false;
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
  // What was foretold of steps 2 and 3 is the same, too.
  const std::vector<Json> one = metrics_of(whole.out), other = metrics_of(parts.out);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(one[i].find("prediction")->dump() == other[i].find("prediction")->dump());
  }
  TrainConfig changed = config("changed");
  REQUIRE(f.run_until(changed, 1) == ExitCode::stopped);
  changed.foresight = {};
  REQUIRE(f.run(changed) == ExitCode::done);
  CHECK(f.root("changed") == f.root("whole"));
}

}  // namespace
}  // namespace hearth::test
