// shrink= of a virtual device: copies of weights are dropped between steps, and no bit changes.
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "budget/device_loads.h"
#include "train/same_bits.h"

namespace hearth::test {
namespace {

constexpr const char* kHostToDevice = "host->virtual:0";

/// Runs of three steps on one or two devices, whose budgets fall.
class Shrinking : public SameBitsFixture {
 public:
  TrainConfig on(const TrainedWith& with, const std::string& out, const std::string& policy,
                 const std::string& devices) const {
    TrainConfig c = config_of(with, out);
    c.policy = policy;
    c.devices = devices;
    c.recorded.push_back({"devices", devices, false});
    return c;
  }
  /// Of a device that has no limit: the least that it can fall to, and what it begins with.
  std::pair<uint64_t, uint64_t> range(const TrainConfig& c) const {
    unbind_thread();
    RecordingReporter reporter;
    const PlannedRun run(c, open_model(c), reporter);
    const Place device = run.opened->devices.hosts;
    return {least_budget(run.model, device),
            run.model.plan.places[static_cast<size_t>(device)].peak};
  }
  std::vector<Json> dropped(const std::string& out) const {
    std::vector<Json> events;
    for (const std::string& line : lines(out + "/journal.jsonl")) {
      const Json event = parse_json(line, "journal");
      if (event.find("event")->as_string() == "dropped") events.push_back(event);
    }
    return events;
  }
};

std::string falls(int64_t step, uint64_t bytes) {
  return "virtual:shrink=" + std::to_string(step) + ":" + std::to_string(bytes);
}

/// What a step reports, while it runs to its end.
struct Reported {
  RecordingReporter reporter;
  ExitCode code;
  explicit Reported(const TrainConfig& config) {
    unbind_thread();
    code = train(config, reporter);
  }
  const StepMetrics& of(size_t step) const { return reporter.steps.at(step - 1); }
};

TEST_CASE("shrink: the bits of one host, with fewer copies from that step on") {
  Shrinking f;
  int runs = 0, turn = 0;
  for (const TrainedWith& with : {TrainedWith{"qwen3_moe", {}, ComputeChoice::f32},
                                  TrainedWith{"mixtral", {}, ComputeChoice::bf16},
                                  TrainedWith{"qwen2_moe", 0.2, ComputeChoice::f32},
                                  TrainedWith{"olmoe", 0.0, ComputeChoice::bf16}}) {
    for (const char* policy : {"gpipe-offload", "mobius"}) {
      for (const bool least : {true, false}) {
        if (kSanitized && turn++ % 3 != 0) continue;
        INFO(with.family << " " << policy << (least ? " least" : " half"));
        const auto [low, high] = f.range(f.on(with, "x", policy, "virtual"));
        REQUIRE(low < high);
        const uint64_t budget = least ? low : (low + high) / 2;
        const std::string out = "shrunk" + std::to_string(runs++);
        const Reported shrunk(f.on(with, out, policy, falls(2, budget)));
        REQUIRE(shrunk.code == ExitCode::done);
        const RunBits& expected = f.on_host(with);
        CHECK(f.root(out) == expected.root);
        CHECK(f.result(out) == expected.result);
        for (size_t step = 1; step <= 3; ++step) {
          const auto& [loss, aux, norm] = expected.steps[step - 1];
          CHECK(shrunk.of(step).loss == loss);
          CHECK(shrunk.of(step).grad_norm == norm);
          const uint64_t held = shrunk.of(step).peak_device_bytes.at("virtual:0");
          if (step == 1) {
            CHECK(held > budget);
          } else {
            CHECK(held <= budget);
          }
        }
        // What does not fit any more is loaded again within a step.
        if (least) {
          CHECK(shrunk.of(3).bytes.at(kHostToDevice) > shrunk.of(1).bytes.at(kHostToDevice));
        }
        const std::vector<Json> events = f.dropped(out);
        REQUIRE(events.size() == 1);
        const Json& event = events.front();
        CHECK(event.find("step")->as_int() == 2);
        CHECK(event.find("device")->as_string() == "virtual:0");
        CHECK(event.find("blocks")->as_int() > 0);
        const auto bytes = static_cast<uint64_t>(event.find("bytes")->as_int());
        CHECK(bytes >= high - budget);
        CHECK(bytes == shrunk.of(1).peak_device_bytes.at("virtual:0") -
                           shrunk.of(2).peak_device_bytes.at("virtual:0"));
        CHECK(event.find("budget_bytes")->as_int() == static_cast<int64_t>(budget));
        CHECK(event.find("why")->as_string() == "shrink=2:" + std::to_string(budget));
        // Copies whose update is due are there until the next step begins.
        const int64_t cached = event.find("cached_bytes")->as_int();
        CHECK(cached > 0);
        CHECK(cached <= static_cast<int64_t>(bytes));
      }
    }
  }
}

TEST_CASE("shrink: each device of a pipeline has its own budget") {
  Shrinking f;
  const TrainedWith with{"qwen2_moe", 0.2};
  const auto [low, high] = f.range(f.on(with, "x", "mobius", "2xvirtual"));
  const uint64_t budget = (low + high) / 2;
  const Reported run(f.on(with, "two", "mobius", falls(3, budget) + "," + falls(2, high - 1)));
  REQUIRE(run.code == ExitCode::done);
  CHECK(f.root("two") == f.on_host(with).root);
  const std::vector<Json> events = f.dropped("two");
  REQUIRE(events.size() == 2);
  CHECK(events[0].find("device")->as_string() == "virtual:1");
  CHECK(events[0].find("step")->as_int() == 2);
  CHECK(events[1].find("device")->as_string() == "virtual:0");
  CHECK(events[1].find("step")->as_int() == 3);
  CHECK(run.of(3).peak_device_bytes.at("virtual:0") <= budget);
}

TEST_CASE("shrink: a run that is stopped before or behind the step ends at the same bits") {
  Shrinking f;
  for (const TrainedWith& with : {TrainedWith{}, TrainedWith{"mixtral", 0.0}}) {
    const std::string out = with.family + "-run";
    const auto [low, high] = f.range(f.on(with, "x", "mobius", "virtual"));
    const TrainConfig config = f.on(with, out, "mobius", falls(2, low + (high - low) / 3));
    REQUIRE(f.run_until(config, 1) == ExitCode::stopped);
    CHECK(f.dropped(out).empty());
    REQUIRE(f.run_until(config, 2) == ExitCode::stopped);
    CHECK(f.dropped(out).size() == 1);
    const Reported end(config);
    REQUIRE(end.code == ExitCode::done);
    CHECK(f.root(out) == f.on_host(with).root);
    CHECK(f.result(out) == f.on_host(with).result);
    const std::vector<Json> events = f.dropped(out);
    REQUIRE(events.size() == 2);  // the device began with all of its slots
    CHECK(events[1].find("step")->as_int() == 3);
    CHECK(end.of(1).peak_device_bytes.at("virtual:0") <= low + (high - low) / 3);
  }
}

TEST_CASE("shrink: ends with 6 when nothing is left to drop, with the state of the last step") {
  Shrinking f;
  const TrainedWith with;
  for (const std::string policy : {"", "gpipe-offload", "mobius"}) {
    INFO(policy);
    const std::string out = "out" + policy;
    const auto [low, high] = f.range(f.on(with, "x", policy, "virtual"));
    CHECK((low == high) == policy.empty());  // where weights live for good, nothing is cached
    const TrainConfig config = f.on(with, out, policy, falls(3, low - 1));
    const Raised raised = raised_by([&] { f.run(config); });
    CHECK(raised.code == ExitCode::device);
    CHECK(raised.says("virtual:0: its budget fell to " + std::to_string(low - 1) +
                      " bytes at step 3, but the run needs " + std::to_string(low)));
    CHECK(f.root(out).starts_with("2 "));
    CHECK(f.dropped(out).size() == 1);
    CHECK(f.lines(out + "/metrics.jsonl").size() == 2);
    // The same command ends in the same way, and one with enough memory goes on.
    CHECK(raised_by([&] { f.run(config); }).code == ExitCode::device);
    CHECK(f.root(out).starts_with("2 "));
    TrainConfig more = f.on(with, out, policy, falls(3, low));
    more.allow_change = {"devices"};
    CHECK(f.run(more) == ExitCode::done);
    CHECK(f.root(out) == f.on_host(with).root);
    CHECK(f.dropped(out).back().find("blocks")->as_int() ==
          (policy.empty() ? 0 : f.dropped(out)[0].find("blocks")->as_int()));
  }
}

TEST_CASE("shrink: a plan warns of a budget that will be too small, and of no other") {
  Shrinking f;
  const auto [low, high] = f.range(f.on({}, "x", "mobius", "virtual"));
  for (const bool small : {true, false}) {
    unbind_thread();
    RecordingReporter reporter;
    const TrainConfig config = f.on({}, "", "mobius", falls(3, small ? low - 1 : low));
    CHECK(report_plan(config, reporter).fits);
    REQUIRE(reporter.warnings.size() == (small ? 1 : 0));
    if (!small) continue;
    CHECK(reporter.warnings[0].find("fall to " + std::to_string(low - 1) + " bytes at step 3") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::test
