// --policy auto: what it becomes, why, and that runs repeat it. Bits on all devices:
// test_same_bits.cpp.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <set>

#include "base/sanitized.h"
#include "state/saved_state.h"
#include "train/aptmoe_runs.h"

namespace hearth::test {
namespace {

/// Runs of the default policy on one device with cost tables, and little memory.
struct AutoFixture : SameBitsFixture {
  AutoFixture() {
    assumed.reset();  // assumed links load for nothing
    host_call_s = 2e-7;
    link_bytes_per_s = 2e9;
  }

  TrainConfig small(const std::string& out, const TrainedWith& with, int devices = 1) const {
    TrainConfig config = config_of(with, out);
    config.recompute = Recompute::none;
    const RunsOn on{.devices = devices, .host = "host", .hot = 2, .by_times = true};
    config.devices = with_costs(list_of(config, on));
    config.recorded.push_back({"policy", "auto", false});
    return config;
  }
  PlanReport plan(const TrainConfig& config) const {
    unbind_thread();
    return plan_of(config);
  }
};

std::string became(const Json& plan) {
  return plan.find("policy_choice")->find("became")->as_string();
}
double time_of(const Json& plan) { return plan.find("time_s")->as_double(); }

TEST_CASE("auto: what fits lives on the device, and nothing is compared") {
  AutoFixture f;
  TrainConfig config = f.config_of({}, "x");
  config.devices = f.with_costs("virtual,host");
  const Json choice = *f.plan(config).json.find("policy_choice");
  CHECK(choice.find("became")->as_string() == "static");
  CHECK(choice.find("why")->as_string() == "all experts fit on the device");
  CHECK(choice.find("candidates")->as_array().empty());
  unbind_thread();
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  CHECK(reporter.steps.back().late_load_s == 0);
  CHECK_FALSE(reporter.steps.back().expert_hit_rate);
}

TEST_CASE("auto: without tables that decide it is static, as before") {
  SameBitsFixture f;
  TrainConfig config = f.config_of({}, "x");
  config.devices = f.list_of(config, {.devices = 1, .host = "host", .least = true});
  unbind_thread();
  const Json plan = plan_of(config).json;
  CHECK(became(plan) == "static");
  CHECK(plan.find("policy_choice")->find("why")->as_string().find("no cost tables") !=
        std::string::npos);
  // Where there is nothing to choose, nothing is said.
  for (const char* devices : {"host", "virtual"}) {
    config.devices = devices;
    unbind_thread();
    CHECK(plan_of(config).json.find("policy_choice") == nullptr);
  }
}

TEST_CASE("auto: no policy of its candidates is predicted to be faster") {
  if (kSanitized) return;  // plans are searched for a minute
  AutoFixture f;
  std::mt19937_64 random(7);
  std::set<std::string> names;
  const double host_calls[] = {2e-7, 2e-6, 2e-5}, links[] = {2e6, 5e7, 2e9};
  for (const bool lora : {false, true}) {
    for (const double host_call : host_calls) {
      for (const double link : links) {
        const TrainedWith with{"olmoe", lora ? std::optional(0.0) : std::nullopt};
        TrainConfig config = f.config_of(with, "x");
        f.host_call_s = host_call;
        f.link_bytes_per_s = link;
        RunsOn on{.devices = 1 + static_cast<int>(random() % 2), .host = "host", .by_times = true};
        on.least = random() % 2 == 0;
        if (!on.least) on.hot = 1 + static_cast<int>(random() % 3);
        config.devices = f.with_costs(f.list_of(config, on));
        const Json plan = f.plan(config).json;
        INFO(text_of(with, on) << ", host call " << host_call << ", link " << link << ": "
                               << plan.find("policy_choice")->dump());
        names.insert(became(plan));
        for (const Json& of : plan.find("policy_choice")->find("candidates")->as_array()) {
          if (of.find("time_s")->is_null()) continue;
          CHECK(time_of(plan) <= 1.0101 * of.find("time_s")->as_double());
        }
        TrainConfig other = config;
        other.policy = "aptmoe";
        const PlanReport of = f.plan(other);
        if (of.fits) CHECK(time_of(plan) <= 1.0101 * time_of(of.json));
      }
    }
  }
  CHECK(names.size() > 1);
  CHECK(names.contains("makespan"));
}

TEST_CASE("auto: a run that divides experts says so, and has its decisions in the journal") {
  AutoFixture f;
  TrainConfig config = f.small("run", {"olmoe", {}});
  config.all_decisions = true;
  REQUIRE(f.run(config) == ExitCode::done);
  const std::string journal = config.out + "/journal.jsonl";
  const std::vector<Json> policy = events_of(journal, "policy");
  REQUIRE(policy.size() == 1);
  CHECK(policy[0].find("step")->as_int() == 0);
  REQUIRE(policy[0].find("became")->as_string() == "makespan");
  CHECK(policy[0].find("candidates")->as_array().size() == 4);
  const std::vector<Json> decisions = events_of(journal, "decision");
  REQUIRE(decisions.size() >= 9);
  std::set<std::string> reasons;
  for (const Json& decision : decisions) {
    for (const Json& why : decision.find("reason")->as_array()) {
      if (why.is_string()) reasons.insert(why.as_string());
    }
  }
  for (const std::string& why : reasons) CHECK(reason_named(why) != SplitReason::none);
  CHECK_FALSE(reasons.empty());
  const Json plan = parse_json(read_file(config.out + "/plan.json"), "plan.json");
  CHECK(became(plan) == "makespan");
  CHECK(plan.find("policy")->as_string() == "auto");

  // Another run repeats them from the journal.
  TrainConfig again = f.small("again", {"olmoe", {}});
  again.replay_decisions = journal;
  again.all_decisions = true;
  REQUIRE(f.run(again) == ExitCode::done);
  const auto where = [&](const std::string& path) {
    std::string text;
    for (const Json& of : events_of(path, "decision")) text += of.find("where")->dump();
    return text;
  };
  CHECK(where(again.out + "/journal.jsonl") == where(journal));
  CHECK(f.root("again") == f.root("run"));
}

TEST_CASE("auto: a run that was stopped repeats its policy, its decisions and its bits") {
  AutoFixture f;
  for (const int devices : {1, 2}) {
    if (kSanitized && devices > 1) break;
    const TrainedWith with{"olmoe", devices == 1 ? std::nullopt : std::optional(0.0)};
    const std::string name = std::to_string(devices);
    TrainConfig host = f.config_of(with, "host" + name);
    REQUIRE(f.run(host) == ExitCode::done);
    const TrainConfig whole = f.small("whole" + name, with, devices);
    const TrainConfig parts = f.small("parts" + name, with, devices);
    REQUIRE(f.run(whole) == ExitCode::done);
    REQUIRE(f.run_until(parts, 1) == ExitCode::stopped);
    const std::string became =
        open_state(parts.out + "/state/step-00000001").extra.find("auto_policy")->as_string();
    if (devices == 1) CHECK(became == "makespan");
    REQUIRE(f.run(parts) == ExitCode::done);
    const auto digests = [](const TrainConfig& c) {
      return digests_in(events_of(c.out + "/journal.jsonl", "decisions"));
    };
    CHECK((devices > 1 || digests(whole).size() == 3));
    CHECK(digests(parts) == digests(whole));
    CHECK(f.root("parts" + name) == f.root("host" + name));
    CHECK(f.result("parts" + name) == f.result("host" + name));
    const std::vector<Json> policies = events_of(parts.out + "/journal.jsonl", "policy");
    REQUIRE(policies.size() == 2);
    for (const Json& policy : policies) CHECK(policy.find("became")->as_string() == became);
    CHECK(policies[1].find("why")->as_string() == "the saved state has it");
  }
}

TEST_CASE("auto: a plan file says what it became, and the run of it becomes the same") {
  AutoFixture f;
  TrainConfig config = f.small("run", {"olmoe", {}});
  const PlanReport plan = f.plan(config);
  REQUIRE(became(plan.json) == "makespan");
  f.write(f.dir / "plan.json", plan.json.dump());
  config.plan_file = f.dir / "plan.json";
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(events_of(config.out + "/journal.jsonl", "policy")[0].find("why")->as_string() ==
        "the plan file has it");
}

TEST_CASE("auto: decisions to replay need a run that decides") {
  SameBitsFixture f;
  TrainConfig config = f.config_of({}, "x");
  f.write(f.dir / "journal.jsonl", "");
  config.replay_decisions = f.dir / "journal.jsonl";
  for (const char* devices : {"host", "virtual"}) {
    config.devices = devices;
    const Raised refused = raised_by([&] { f.run(config); });
    INFO(refused.message);
    CHECK(refused.code == ExitCode::usage);
    CHECK(refused.says("decisions are to be replayed, but this run makes none"));
  }
}

}  // namespace
}  // namespace hearth::test
