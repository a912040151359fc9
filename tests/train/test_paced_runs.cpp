// Runs with cost tables (costs=): the same bits, the table's times in the plan, and what is refused.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "setup/run_devices.h"
#include "support/has.h"
#include "train/planned_run.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

/// A table that times every task but those of `left_out`: `seconds` each.
std::string table(double seconds, const std::string& left_out = "", const std::string& links = "") {
  std::string entries;
  for (const std::string kind :
       {"embed", "attention", "mlp", "dispatch", "experts", "combine", "head", "norm", "update"}) {
    if (kind == left_out) continue;
    for (const char* phase : {"forward", "backward"}) {
      if (!entries.empty()) entries += ",\n";
      entries += R"({"kind": ")" + kind + R"(", "phase": ")" + phase +
                 R"(", "dtype": "f32", "units": [100000], "seconds": [)" + std::to_string(seconds) +
                 "]}";
    }
  }
  return R"({"format": "hearth-costs-1", "device": "cuda:0", "machine": "a test",
    "made": "2026-11-24", "entries": [)" +
         entries + R"(], "links": [)" + links + "]}";
}

struct PacedFixture : TrainingFixture {
  PacedFixture() {
    assumed.reset();
    // Paths that look like keys of a list.
    make_directory(dir / "virtual");
    write(dir / "virtual/mem=2.json", table(1e-6));
    write(dir / "slow.json", table(1e-4));
  }
  std::string fast() const { return "costs=" + (dir / "virtual/mem=2.json"); }
  std::string slow() const { return "costs=" + (dir / "slow.json"); }
  TrainConfig f32(const std::string& out, const std::string& devices) const {
    TrainConfig c = config(out);
    c.compute = ComputeChoice::f32;
    c.devices = devices;
    return c;
  }
  bool refused(const std::string& devices, ExitCode code, const std::string& part) const {
    const auto raised = raised_by([&] { plan_of(f32("refused", devices)); });
    INFO(raised.message);
    return raised.code == code && raised.says(part);
  }
};

TEST_CASE("paced runs end with the bits of the host's, and say what was late") {
  PacedFixture f;
  REQUIRE(f.run(f.f32("host", "host")) == ExitCode::done);
  const std::vector<std::string> lists = {"host:" + f.fast(), "virtual:" + f.slow(),
                                          "virtual:h2d=1G/" + f.slow() + ",host:" + f.fast()};
  for (size_t i = 0; i < lists.size(); ++i) {
    INFO(lists[i]);
    const std::string out = "paced" + std::to_string(i);
    RecordingReporter reporter;
    REQUIRE(train(f.f32(out, lists[i]), reporter) == ExitCode::done);
    CHECK(f.root(out) == f.root("host"));
    CHECK(f.result(out) == f.result("host"));
    const size_t places = i == 2 ? 2 : 1;
    for (const StepMetrics& m : reporter.steps) {
      REQUIRE(m.paced_late.has_value());
      REQUIRE(m.paced_late_s.size() == places);
      double late_s = 0;
      for (const auto& [place, seconds] : m.paced_late_s) late_s += seconds;
      CHECK((*m.paced_late > 0) == (late_s > 0));
      const Json line = to_json(m);
      CHECK(line.find("paced_late")->as_int() == *m.paced_late);
      CHECK(line.find("paced_late_s")->as_object().size() == places);
      // No place takes less than the tables say.
      CHECK(m.bound_pct > 0);
      CHECK(m.bound_pct < 100);
    }
    CHECK(std::ranges::count_if(reporter.notes, [](const std::string& note) {
            return note.find(" paced tasks took longer than the cost table says") !=
                   std::string::npos;
          }) == static_cast<int64_t>(places));
  }
  CHECK_FALSE(read_file(f.dir / "host/metrics.jsonl").find("paced") != std::string::npos);
}

TEST_CASE("paced runs: a plan of places with tables measures nothing and repeats") {
  PacedFixture f;
  for (const std::string& list : {"host:" + f.slow(), "virtual:" + f.slow(),
                                  "virtual:h2d=1G/" + f.slow() + ",host:" + f.fast()}) {
    INFO(list);
    const TrainConfig config = f.f32("run", list);
    RecordingReporter reporter;
    const PlannedRun run(config, open_model(config), reporter);
    CHECK(run.model.rates->best.flops_per_s == 0);
    CHECK(run.times.source == "cost tables");
    const double step = run.times.step.time_s, bound = run.times.bound.total_s();
    CHECK(step > 0);
    CHECK(bound > 0);
    CHECK(bound <= step);
    const PlanReport report = plan_of(config);
    CHECK(report.json.find("time_s")->as_double() == step);
    CHECK(report.json.find("bound_s")->as_double() == bound);
    CHECK(report.text.find("predicted from cost tables: ") != std::string::npos);
    CHECK(run.model.process.program % (512 << 10) == 0);
    CHECK(run.model.opening_bytes % (1 << 20) == 0);
  }
  // One place measured, one with a table.
  const AssumedRates quick;
  for (const std::string& list : {"virtual:" + f.slow() + ",host", "virtual,host:" + f.slow()}) {
    const PlanReport report = plan_of(f.f32("run", list));
    CHECK(report.text.find("from cost tables and a quick measurement: ") != std::string::npos);
    CHECK(report.json.find("time_s")->as_double() > report.json.find("bound_s")->as_double());
  }
}

TEST_CASE("paced runs: of two places only the one without a table is measured") {
  PacedFixture f;
  for (const std::string& list : {"virtual:" + f.slow() + ",host", "virtual,host:" + f.slow()}) {
    INFO(list);
    const TrainConfig config = f.f32("run", list);
    RecordingReporter reporter;
    const PlannedRun run(config, open_model(config), reporter);
    CHECK(run.model.rates->best.flops_per_s > 0);
    CHECK(std::isfinite(run.times.step.time_s));
    CHECK(run.times.bound.total_s() > 0);
  }
}

TEST_CASE("paced runs: tasks without an entry take their real time, and the run names them") {
  PacedFixture f;
  f.write(f.dir / "part.json", table(1e-6, "experts"));
  f.write(f.dir / "none.json", R"({"format": "hearth-costs-1", "device": "a", "machine": "b",
    "made": 1, "entries": [], "links": []})");
  const std::string note =
      "host: paced by its cost table; it has no times for experts forward, experts backward: they "
      "take their real time";
  CHECK(plan_of(f.f32("run", "host:costs=" + (f.dir / "part.json"))).text.find(note) !=
        std::string::npos);
  RecordingReporter reporter;
  REQUIRE(train(f.f32("part", "host:costs=" + (f.dir / "part.json")), reporter) == ExitCode::done);
  CHECK(std::ranges::any_of(reporter.notes,
                            [&](const std::string& line) { return line.starts_with(note); }));
  const PlanReport none = plan_of(f.f32("run", "host:costs=" + (f.dir / "none.json")));
  CHECK(none.text.find("not predicted, the cost tables have none of its tasks") !=
        std::string::npos);
  CHECK(none.json.find("time_s")->is_null());
  CHECK(none.json.find("tokens_per_s")->is_null());
  RecordingReporter untimed;
  REQUIRE(train(f.f32("none", "host:costs=" + (f.dir / "none.json")), untimed) == ExitCode::done);
  for (const std::string& line : untimed.notes) CHECK(line.find("tokens/s") == std::string::npos);
  for (const StepMetrics& m : untimed.steps) CHECK(m.bound_pct == 0);
}

TEST_CASE("paced runs: a virtual device has the links of its table, unless keys say others") {
  PacedFixture f;
  f.write(f.dir / "links.json",
          table(0, "", R"({"link": "host->cuda:0", "bytes_per_s": 2e9, "latency_s": 0.01,
             "together": 1e9}, {"link": "cuda:0->host", "bytes_per_s": 3e9, "latency_s": 0.02,
             "together": 1e9})"));
  const auto links = [&](const std::string& keys) {
    const std::string list = "virtual:" + keys + "costs=" + (f.dir / "links.json");
    return *open_devices({list, 0, 1 << 20, {0, 1}}).places.at(1).device->link_rates();
  };
  const LinkRates own = links("");
  CHECK(own.in.bytes_per_s == 2e9);
  CHECK(own.in.latency_s == 0.01);
  CHECK(own.out.bytes_per_s == 3e9);
  CHECK(own.out.latency_s == 0.02);
  const LinkRates keyed = links("h2d=5G/latency=1us/");
  CHECK(keyed.in.bytes_per_s == 5e9);
  CHECK(keyed.in.latency_s == 1e-6);
  CHECK(keyed.out.bytes_per_s == 3e9);
  CHECK(keyed.out.latency_s == 1e-6);
  CHECK(links("latency=0/d2h=7G/").out.bytes_per_s == 7e9);
  CHECK(links("latency=0/").in.latency_s == 0);
  const LinkRates none =
      *open_devices({"virtual:" + f.slow(), 0, 1 << 20, {0, 1}}).places.at(1).device->link_rates();
  CHECK(none.in.bytes_per_s == 0);
}

TEST_CASE("paced runs: cores= of the host, and the cores by which a table is read") {
  PacedFixture f;
  const auto open = [&](const std::string& list, std::vector<int> cores = {0, 1, 2}) {
    return open_devices({list, 0, 1 << 20, std::move(cores)});
  };
  CHECK(open("host:cores=2").cores == std::vector<int>{0, 1});
  CHECK(open("host").cores == std::vector<int>{0, 1, 2});
  const RunDevices both = open("virtual:cores=1,host:cores=1");
  CHECK(both.cores == std::vector<int>{0});
  CHECK(both.places.at(1).teams.at(0).workers == 1);
  CHECK(open("host:cores=4").workers == 4);  // they share the cores
  CHECK(open("host:cores=1", {}).workers == 1);

  TrainConfig config = f.f32("run", "virtual:cores=1/" + f.slow() + ",host:" + f.fast());
  RecordingReporter reporter;
  const auto opened = open_model(config);
  const PlannedRun run(config, opened, reporter);
  CHECK(cost_tables(run.model).at(0).cores == opened->workers);
  CHECK(cost_tables(run.model).at(1).cores == 1);
  CHECK(cost_tables(run.model).at(0).table != cost_tables(run.model).at(1).table);
}

TEST_CASE("paced runs: a table that cannot be read ends the command with its name") {
  PacedFixture f;
  CHECK(f.refused("virtual:costs=" + (f.dir / "absent.json"), ExitCode::input, "absent.json"));
  CHECK(f.refused("host:costs=" + (f.dir / "rows.jsonl"), ExitCode::input, "rows.jsonl"));
  f.write(f.dir / "bad.json", table(1e-6, "experts", R"({"link": "x"})"));
  CHECK(f.refused("host,virtual:costs=" + (f.dir / "bad.json"), ExitCode::input,
                  "bad.json: links[0]"));
}

TEST_CASE("paced runs: the memory of a device is raised in its item, whatever paths look like") {
  PacedFixture f;
  const auto raised = [&](const std::string& list) {
    return open_devices({list, 0, 1 << 20, {0, 1}}).places.at(1).budget.raised_to("13M");
  };
  const std::string path = f.fast();
  CHECK(raised("virtual:" + path) == "--devices virtual:mem=13M/" + path);
  CHECK(raised("virtual:mem=2M/" + path) == "--devices virtual:mem=13M/" + path);
  CHECK(raised("host:" + path + ",virtual") == "--devices host:" + path + ",virtual:mem=13M");
  CHECK(raised("host:" + path + ",1xvirtual:mem=1M/h2d=1G") ==
        "--devices host:" + path + ",virtual:mem=13M/h2d=1G");
}

}  // namespace
}  // namespace hearth::test
