// --predictor router: models of the routers foretell the tokens of experts. Runs keep their bits,
// and a resume goes on with what was learned.
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "state/saved_state.h"
#include "train/aptmoe_runs.h"

namespace hearth::test {
namespace {

TrainConfig foretold_run(const SameBitsFixture& f, const std::string& out, const TrainedWith& with,
                         int32_t ahead = 1) {
  TrainConfig config = aptmoe_run(f, out, with);
  config.foresight.predictor = ForetoldBy::router;
  config.foresight.ahead = ahead;
  config.foresight.phases.inter_expert = false;  // so that what is foretold divides the layers
  const RunsOn on{.devices = 1, .host = "host", .least = !with.lora_dropout};
  config.devices = f.with_costs(f.list_of(config, on));  // with the memory of its samples
  return config;
}

std::vector<Json> metrics_of(const TrainConfig& config) {
  std::vector<Json> lines;
  const std::string path = config.out + "/metrics.jsonl", text = read_file(path);
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(parse_json(text.substr(at, end - at), path));
  }
  return lines;
}
std::vector<std::pair<int64_t, std::string>> decisions_of(const TrainConfig& config) {
  return digests_in(events_of(config.out + "/journal.jsonl", "decisions"));
}

TEST_CASE("router predictor: a run has the bits of one host, and decides otherwise than history") {
  SameBitsFixture f;
  bool differs = false;
  for (const TrainedWith& with : {TrainedWith{"olmoe", {}}, TrainedWith{"qwen2_moe", 0.2},
                                  TrainedWith{"qwen3_moe", {}, ComputeChoice::bf16}}) {
    const std::string name = with.family;
    const TrainConfig host = f.config_of(with, "host" + name);
    REQUIRE(f.run(host) == ExitCode::done);
    TrainConfig history = foretold_run(f, "history" + name, with);
    history.foresight.predictor = ForetoldBy::history;
    REQUIRE(f.run(history) == ExitCode::done);
    for (const int32_t ahead : {1, 2}) {
      const std::string out = "ahead" + std::to_string(ahead) + name;
      const TrainConfig config = foretold_run(f, out, with, ahead);
      REQUIRE(f.run(config) == ExitCode::done);
      CHECK(f.root(out) == f.root("host" + name));
      CHECK(f.result(out) == f.result("host" + name));
      differs = differs || decisions_of(config) != decisions_of(history);
    }
  }
  CHECK(differs);
}

TEST_CASE("router predictor: what it foretells is in the metrics, from the first step on") {
  SameBitsFixture f;
  const TrainConfig config = foretold_run(f, "run", {"olmoe", 0.0});
  REQUIRE(f.run(config) == ExitCode::done);
  for (const Json& line : metrics_of(config)) {
    const Json& prediction = *line.find("prediction");
    for (const char* measure : {"token_hit", "least_quarter"}) {
      REQUIRE(prediction.find(measure)->is_number());
      CHECK(prediction.find(measure)->as_double() > 0);
      CHECK(prediction.find(measure)->as_double() <= 1);
    }
  }
  // The plan counts its memory.
  const Json plan = parse_json(read_file(config.out + "/plan.json"), "plan.json");
  int lines = 0;
  for (const Json& line : plan.find("memory")->as_array()[0].find("lines")->as_array()) {
    if (line.find("name")->as_string() != "predictor of experts") continue;
    ++lines;
    CHECK(line.find("bytes")->as_int() == line.find("measured")->as_int());
  }
  CHECK(lines == 1);
}

TEST_CASE("router predictor: a run that was stopped goes on with what was learned") {
  SameBitsFixture f;
  for (const int devices : {1, 2}) {
    const TrainedWith with{"olmoe", devices == 1 ? std::nullopt : std::optional(0.0)};
    const auto config = [&](const std::string& out) {
      TrainConfig c = foretold_run(f, out + std::to_string(devices), with);
      const RunsOn on{.devices = devices, .host = "host", .least = true};
      c.devices = f.with_costs(f.list_of(c, on));
      return c;
    };
    const TrainConfig whole = config("whole"), parts = config("parts");
    REQUIRE(f.run(whole) == ExitCode::done);
    REQUIRE(f.run_until(parts, 1) == ExitCode::stopped);
    REQUIRE(f.run(parts) == ExitCode::done);
    CHECK(decisions_of(whole).size() == 3);
    CHECK(decisions_of(parts) == decisions_of(whole));
    const std::vector<Json> one = metrics_of(whole), other = metrics_of(parts);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(one[i].find("prediction")->dump() == other[i].find("prediction")->dump());
    }
    // Its weights are saved, and are no part of the root.
    const std::string last = "/state/step-00000003";
    const SavedState state = verify_state(whole.out + last);
    std::set<std::string> components;
    for (const StateDigest::Item& item : state.digest.components) components.insert(item.name);
    CHECK(components.contains("predictor"));
    CHECK(components.contains("popularity"));
    const TrainConfig host = f.config_of(with, "host" + std::to_string(devices));
    REQUIRE(f.run(host) == ExitCode::done);
    CHECK(open_state(host.out + last).digest.root == state.digest.root);
  }
}

TEST_CASE("router predictor: a resume may begin with it, and may leave it") {
  SameBitsFixture f;
  const TrainedWith with{"olmoe", 0.0};
  const TrainConfig host = f.config_of(with, "host");
  REQUIRE(f.run(host) == ExitCode::done);
  for (const bool first : {false, true}) {
    TrainConfig config = foretold_run(f, first ? "leaves" : "begins", with);
    config.foresight.predictor = first ? ForetoldBy::router : ForetoldBy::history;
    REQUIRE(f.run_until(config, 1) == ExitCode::stopped);
    config.foresight.predictor = first ? ForetoldBy::history : ForetoldBy::router;
    REQUIRE(f.run(config) == ExitCode::done);
    CHECK(f.root(first ? "leaves" : "begins") == f.root("host"));
  }
}

TEST_CASE("router predictor: an idle one is said") {
  SameBitsFixture f;
  TrainConfig config = f.config_of({}, "x");
  config.devices = "virtual,host";
  config.foresight.predictor = ForetoldBy::router;
  unbind_thread();
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  CHECK(std::ranges::any_of(reporter.warnings, [](const std::string& line) {
    return line.find("the predictor changes nothing here") != std::string::npos;
  }));
}

}  // namespace
}  // namespace hearth::test
