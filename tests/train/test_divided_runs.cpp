// --divide-experts: runs whose host and device compute one expert of a layer together. Their losses and
// norms are those of one host within the bounds of docs/numbers.md; decisions are repeated by a resume and
// from a journal.
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/sanitized.h"
#include "train/aptmoe_runs.h"

namespace hearth::test {
namespace {

/// Runs of the makespan's rule on devices with cost tables, and little memory.
struct DividedFixture : SameBitsFixture {
  DividedFixture() {
    assumed.reset();  // assumed links load for nothing
    // As fast as the host. Experts are so small that their rows would take a slow link longer.
    device_row_s = 2e-6;
    link_bytes_per_s = 2e9;
  }

  TrainConfig dividing(const std::string& out, const TrainedWith& with, int devices = 1) const {
    TrainConfig config = config_of(with, out);
    const RunsOn on{.devices = devices, .host = "host", .hot = 2, .by_times = true};
    config.devices = with_costs(list_of(config, on));
    config.planned_policy = "makespan";
    config.divide_experts = true;
    config.all_decisions = true;
    config.recorded.push_back({"policy", "auto", false});
    config.recorded.push_back({"divide-experts", "on", false});
    return config;
  }
  std::vector<StepMetrics> steps_of(const TrainConfig& config) const {
    unbind_thread();
    RecordingReporter reporter;
    REQUIRE(train(config, reporter) == ExitCode::done);
    return reporter.steps;
  }
};

/// The decisions of a full journal, without the times of their lines.
std::vector<std::string> decided_in(const std::string& journal) {
  std::vector<std::string> texts;
  for (Json event : events_of(journal, "decision")) {
    std::erase_if(event.as_object(), [](const auto& member) { return member.first == "time"; });
    texts.push_back(event.dump());
  }
  return texts;
}

/// The experts that were divided in a run: of each, the columns of the device.
std::vector<int64_t> columns_in_journal(const std::string& journal) {
  std::vector<int64_t> columns;
  for (const Json& event : events_of(journal, "decision")) {
    const JsonArray& where = event.find("where")->as_array();
    const JsonArray& why = event.find("reason")->as_array();
    int64_t of_layer = 0;
    for (size_t e = 0; e < where.size(); ++e) {
      const bool is_split = why[e].is_string() && why[e].as_string() == "split";
      CHECK(where[e].is_object() == is_split);
      if (!where[e].is_object()) continue;
      ++of_layer;
      const int64_t here = where[e].find("host")->as_int();
      columns.push_back(where[e].find(event.find("device")->as_string())->as_int());
      CHECK(here + columns.back() == 12);
    }
    CHECK(of_layer <= 1);
  }
  return columns;
}

bool is_close(double a, double b, double relative) {
  return std::isfinite(a) && std::abs(a - b) <= relative * std::max(1.0, std::abs(b));
}

TEST_CASE("divided runs: losses and norms of one host, for every family") {
  DividedFixture f;
  size_t runs = 0, divided = 0, turn = 0;
  for (const std::string& family : kFamilies) {
    for (const auto& lora : {std::optional<double>(), std::optional(0.0), std::optional(0.2)}) {
      for (const ComputeChoice compute : {ComputeChoice::f32, ComputeChoice::bf16}) {
        if (compute == ComputeChoice::bf16 && (family != "olmoe" || lora)) continue;
        if (kSanitized && turn++ % 5 != 0) continue;
        const TrainedWith with{family, lora, compute};
        const int devices = runs % 4 == 3 ? 2 : 1;
        INFO(text_of(with, {.devices = devices, .host = "host"}));
        const std::string name = std::to_string(runs++);
        const std::vector<StepMetrics> host = f.steps_of(f.config_of(with, "host" + name));
        const TrainConfig config = f.dividing("divided" + name, with, devices);
        const std::vector<StepMetrics> steps = f.steps_of(config);
        divided += columns_in_journal(config.out + "/journal.jsonl").empty() ? 0 : 1;
        REQUIRE(steps.size() == host.size());
        const bool f32 = compute == ComputeChoice::f32;
        CHECK(is_close(steps[0].loss, host[0].loss, f32 ? 1e-6 : 1e-4));
        CHECK(is_close(steps[0].grad_norm, host[0].grad_norm, f32 ? 1e-5 : 1e-2));
        for (size_t s = 1; s < steps.size(); ++s) {
          CHECK(is_close(steps[s].loss, host[s].loss, f32 ? 1e-5 : 1e-2));
        }
      }
    }
  }
  INFO(divided << " of " << runs);
  CHECK(divided > (kSanitized ? 0 : runs / 2));
}

TEST_CASE("divided runs: a run that was stopped repeats its decisions and its bits") {
  DividedFixture f;
  for (const std::optional<double>& lora : {std::optional<double>(), std::optional(0.2)}) {
    const TrainedWith with{"olmoe", lora};
    const std::string name = lora ? "lora" : "full";
    const TrainConfig whole = f.dividing("whole" + name, with);
    const TrainConfig parts = f.dividing("parts" + name, with);
    REQUIRE(f.run(whole) == ExitCode::done);
    REQUIRE(f.run_until(parts, 1) == ExitCode::stopped);
    REQUIRE(f.run(parts) == ExitCode::done);
    CHECK_FALSE(columns_in_journal(whole.out + "/journal.jsonl").empty());
    CHECK(decided_in(parts.out + "/journal.jsonl") == decided_in(whole.out + "/journal.jsonl"));
    CHECK(f.root("parts" + name) == f.root("whole" + name));
    CHECK(f.result("parts" + name) == f.result("whole" + name));
  }
}

TEST_CASE("divided runs: decisions are repeated from a journal, by a run that divides experts") {
  DividedFixture f;
  const TrainedWith with{"olmoe", {}};
  const TrainConfig first = f.dividing("first", with);
  REQUIRE(f.run(first) == ExitCode::done);
  const std::string journal = first.out + "/journal.jsonl";
  f.device_row_s = 1e-7;  // by which the rule would decide otherwise
  TrainConfig again = f.dividing("again", with);
  again.replay_decisions = journal;
  REQUIRE(f.run(again) == ExitCode::done);
  CHECK(decided_in(again.out + "/journal.jsonl") == decided_in(journal));
  CHECK(f.root("again") == f.root("first"));

  TrainConfig whole = f.dividing("undivided", with);
  whole.replay_decisions = journal;
  whole.divide_experts = false;
  const Raised refused = raised_by([&] { f.run(whole); });
  INFO(refused.message);
  CHECK(refused.code == ExitCode::input);
  CHECK(refused.says("which this run does not do"));

  std::string text = read_file(journal);
  const size_t at = text.rfind("{\"host\":", text.find("\"split\""));
  REQUIRE(at != std::string::npos);
  f.write(f.dir / "other.jsonl", text.insert(text.find_first_of("0123456789", at), "1"));
  TrainConfig other = f.dividing("other", with);
  other.replay_decisions = f.dir / "other.jsonl";
  const Raised wrong = raised_by([&] { f.run(other); });
  INFO(wrong.message);
  CHECK(wrong.says("which add up to the width"));
}

TEST_CASE("divided runs: a plan says that bits are bounded, and ranks are refused") {
  DividedFixture f;
  TrainConfig config = f.dividing("x", {"olmoe", {}});
  const auto bits = [&] {
    unbind_thread();
    return plan_of(config).json.find("bits")->as_string();
  };
  CHECK(bits() == "bounded");
  config.planned_policy = "aptmoe";  // which divides no expert
  CHECK(bits() == "same");
  config.planned_policy = "makespan";
  config.divide_experts = false;
  CHECK(bits() == "same");
  config.divide_experts = true;
  config.thread_ranks = 3;
  config.parallel = "dp";
  const Raised refused = raised_by([&] { f.run(config); });
  INFO(refused.message);
  CHECK(refused.code == ExitCode::usage);
  CHECK(refused.says("works on one rank"));
}

}  // namespace
}  // namespace hearth::test
