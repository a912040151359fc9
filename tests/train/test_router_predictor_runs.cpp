// --predictor router and pre-attention: models of the routers foretell the tokens of experts, and
// oracle: a recorded run does. Runs keep their bits, and a resume goes on with what was learned.
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "base/sanitized.h"
#include "state/saved_state.h"
#include "train/aptmoe_runs.h"

namespace hearth::test {
namespace {

/// What foretells, and of router how many layers ahead.
struct Teller {
  ForetoldBy by = ForetoldBy::router;
  int32_t ahead = 1;
};

TrainConfig foretold_run(const SameBitsFixture& f, const std::string& out, const TrainedWith& with,
                         const Teller& teller = {}) {
  TrainConfig config = aptmoe_run(f, out, with);
  config.foresight.predictor = teller.by;
  config.foresight.ahead = teller.ahead;
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
    for (const Teller& teller :
         {Teller{}, Teller{ForetoldBy::router, 2}, Teller{ForetoldBy::router, 4},
          Teller{ForetoldBy::pre_attention}}) {
      const std::string out = "by" + std::to_string(static_cast<int>(teller.by)) + "ahead" +
                              std::to_string(teller.ahead) + name;
      const TrainConfig config = foretold_run(f, out, with, teller);
      REQUIRE(f.run(config) == ExitCode::done);
      CHECK(f.root(out) == f.root("host" + name));
      CHECK(f.result(out) == f.result("host" + name));
      differs = differs || decisions_of(config) != decisions_of(history);
    }
    if (kSanitized) return;
  }
  CHECK(differs);
}

TEST_CASE("router predictor: what it foretells is in the metrics, from the first step on") {
  SameBitsFixture f;
  const TrainConfig before = foretold_run(f, "before", {"olmoe", 0.0}, {ForetoldBy::pre_attention});
  const TrainConfig config = foretold_run(f, "run", {"olmoe", 0.0});
  REQUIRE(f.run(before) == ExitCode::done);
  REQUIRE(f.run(config) == ExitCode::done);
  std::vector<Json> all = metrics_of(config);
  for (Json& line : metrics_of(before)) all.push_back(std::move(line));
  CHECK(all.size() == 6);
  for (const Json& line : all) {
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

void goes_on(ForetoldBy by, const std::string& component) {
  SameBitsFixture f;
  for (const int devices : {1, 2}) {
    if (kSanitized && devices == 1) continue;
    const TrainedWith with{"olmoe", devices == 1 ? std::nullopt : std::optional(0.0)};
    const auto config = [&](const std::string& out) {
      TrainConfig c = foretold_run(f, out + std::to_string(devices), with, {by});
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
    CHECK(components.contains(component));
    CHECK(components.contains("popularity"));
    const TrainConfig host = f.config_of(with, "host" + std::to_string(devices));
    REQUIRE(f.run(host) == ExitCode::done);
    CHECK(open_state(host.out + last).digest.root == state.digest.root);
  }
}

TEST_CASE("router predictor: a run that was stopped goes on with what was learned") {
  goes_on(ForetoldBy::router, "predictor");
}
TEST_CASE("pre-attention predictor: a run that was stopped goes on with what was learned") {
  goes_on(ForetoldBy::pre_attention, "predictor-pre-attention");
}

TEST_CASE("router predictor: a resume may begin with it, and may leave it for another") {
  SameBitsFixture f;
  const TrainedWith with{"olmoe", 0.0};
  const TrainConfig host = f.config_of(with, "host");
  REQUIRE(f.run(host) == ExitCode::done);
  constexpr Teller history{ForetoldBy::history}, router{}, two{ForetoldBy::router, 2},
      before{ForetoldBy::pre_attention};
  int number = 0;
  for (const auto& [first, then] : {std::pair(history, router),
                                    {router, history},
                                    {router, before},
                                    {before, router},
                                    {router, two},
                                    {history, before}}) {
    if (kSanitized && number > 1) break;
    const std::string out = "run" + std::to_string(number++);
    const TrainConfig config = foretold_run(f, out, with, first);
    REQUIRE(f.run_until(config, 1) == ExitCode::stopped);
    TrainConfig changed = foretold_run(f, out, with, then);
    changed.devices = config.devices;
    REQUIRE(f.run(changed) == ExitCode::done);
    CHECK(f.root(out) == f.root("host"));
    CHECK(f.result(out) == f.result("host"));
  }
}

TEST_CASE("oracle: it foretells what a recorded run says, and no bit changes") {
  SameBitsFixture f;
  const TrainedWith with{"olmoe", 0.0};
  TrainConfig recorded = foretold_run(f, "recorded", with, {ForetoldBy::history});
  recorded.all_decisions = true;
  REQUIRE(f.run(recorded) == ExitCode::done);
  TrainConfig config = foretold_run(f, "oracle", with, {ForetoldBy::oracle});
  config.replay_decisions = recorded.out + "/journal.jsonl";
  REQUIRE(f.run_until(config, 1) == ExitCode::stopped);
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(f.root("oracle") == f.root("recorded"));
  CHECK(f.result("oracle") == f.result("recorded"));
  for (const Json& line : metrics_of(config)) {
    const Json& prediction = *line.find("prediction");
    CHECK(prediction.find("least_quarter")->as_double() == 1);
    const Json& bytes = *prediction.find("byte_hit");
    if (bytes.is_number()) CHECK(bytes.as_double() == 1);
  }
}

TEST_CASE("oracle: without a journal it is refused") {
  SameBitsFixture f;
  const Raised refused = raised_by([&] {
    f.run(foretold_run(f, "x", {"olmoe", 0.0}, {ForetoldBy::oracle}));
  });
  CHECK(refused.code == ExitCode::usage);
  CHECK(refused.says("the decisions to replay must name its journal"));
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
