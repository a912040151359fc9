// What is read of a run directory, whole, torn, empty or wrong.
#include "report/run_history.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/error.h"
#include "run_files.h"
#include "support/raises.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("a finished run") {
  RunFiles f;
  f.write_run();
  const RunHistory run = read_run(f.path());
  const MetricsHistory& m = run.metrics;
  CHECK(m.steps == 4);
  CHECK(m.axis.first == 0);  // an evaluation stands there
  CHECK(m.axis.last == 4);
  CHECK(m.first_loss == 4.5);
  CHECK(m.last_loss == 2.125);
  CHECK(m.tokens == 400);
  CHECK(m.trained_tokens == 240);
  CHECK(m.time_s == 2);
  CHECK(m.not_finite_steps == std::vector<int64_t>{3});
  CHECK(m.loss.all.count == 3);
  CHECK(m.busy.at("io").all.mean() == 25);
  CHECK(m.busy_s.at("cpu") == 1);
  CHECK(m.stall_s.at("cpu") == 0.25);
  CHECK(m.cpu_s.at("sweeps") == 0.5);
  CHECK(m.limits == std::map<std::string, int64_t>{{"cpu", 4}});
  REQUIRE(m.expert_load.size() == 2);
  CHECK(m.expert_load[1].all.mean() == 2.5);
  const JournalHistory& j = run.journal;
  CHECK(j.end == RunEnd::finished);
  CHECK(j.end_step == 4);
  CHECK(j.resumes == 1);
  CHECK(j.warnings == 1);
  REQUIRE(j.evaluations.size() == 2);
  CHECK(j.evaluations.at(4).loss == 2.375);
  REQUIRE(run.memory.size() == 1);
  CHECK(run.memory[0].lines.at(0).measured == 524288);
  CHECK(run.option("model") == "some/model");
  CHECK(run.option("none") == "");
  CHECK(run.planned("tokens_per_s") == 400);
  CHECK(run.result == "");
}

TEST_CASE("one figure of the peak: what the plan measured, else the most that a step wrote") {
  RunFiles f;
  f.write_run();
  CHECK(read_run(f.path()).peak_bytes() == 1048576);
  f.write("plan.json", R"({"memory": [{"place": "virtual:0", "measured_peak_bytes": 5},
    {"place": "host", "measured_peak_bytes": 38700000}]})");
  CHECK(read_run(f.path()).peak_bytes() == 38700000);
}

TEST_CASE("what was printed as a warning is counted as one, the verdict among them") {
  RunFiles f;
  f.write_run();
  f.write("journal.jsonl",
          R"({"event": "start", "steps": 4}
{"event": "warning", "step": 1, "message": "m"}
{"event": "state_rejected", "state": "s", "file": "f", "reason": "r"}
{"event": "resume", "step": 2, "changes": ["lr: 1 -> 2", "steps: 3 -> 4"]}
{"event": "verdict", "step": 4, "verdict": "alarm", "reasons": ["a moved", "b did not"]}
)");
  const JournalHistory j = read_run(f.path()).journal;
  CHECK(j.warnings == 5);
  CHECK(j.events.back().name == "verdict");
  CHECK(j.events.back().is_alarm);
  CHECK(j.events.back().details == "alarm: a moved; b did not");
  f.write("journal.jsonl", R"({"event": "verdict", "step": 4, "verdict": "ok", "reasons": []})"
                           "\n");
  CHECK(read_run(f.path()).journal.warnings == 0);
}

TEST_CASE("steps that a resume repeats count once, the later line") {
  RunFiles f;
  f.write("metrics.jsonl", metrics_line(1, "9") + metrics_line(2, "8") + metrics_line(3, "7") +
                               metrics_line(2, "6") + metrics_line(3, "5") + metrics_line(4, "4"));
  const MetricsHistory m = read_run(f.path()).metrics;
  CHECK(m.steps == 4);
  CHECK(m.repeated == 2);
  CHECK(m.repeated_s == 1);
  CHECK(m.tokens == 400);
  std::vector<double> losses;
  for (const Bucket& bucket : m.loss.buckets) losses.push_back(bucket.mean());
  CHECK(losses == std::vector<double>{9, 6, 5, 4});
}

TEST_CASE("a run that is written to: what stands behind the last line break is left out") {
  RunFiles f;
  f.write_run();
  const std::string line = metrics_line(5, "1");
  for (size_t length = 1; length < line.size(); length += 37) {
    f.write("metrics.jsonl", metrics_line(4, "2") + line.substr(0, length));
    f.write("journal.jsonl", R"({"event": "start", "steps": 9})"
                             "\n{\"event\": \"sig");
    const RunHistory run = read_run(f.path());
    CHECK(run.metrics.last_step == 4);
    CHECK(run.journal.end == RunEnd::unknown);
    CHECK(run.journal.planned_steps == 9);
  }
}

TEST_CASE("empty and missing files") {
  RunFiles f;
  f.write(".lock", "");  // of a run that reads its weights
  CHECK(read_run(f.path()).metrics.steps == 0);
  f.write("metrics.jsonl", "");
  CHECK(read_run(f.path()).metrics.steps == 0);
  f.write("journal.jsonl", "");
  f.write("config.yaml", "");
  const RunHistory run = read_run(f.path());
  CHECK(run.config.empty());
  CHECK(run.journal.events.empty());
  f.write("config.yaml", "lr: 0.5\nmodel: \"some");  // torn
  CHECK(read_run(f.path()).config.size() == 2);
}

TEST_CASE("what is no run directory, and files that break their format") {
  RunFiles f;
  const auto refused = [&](const std::string& path, const std::string& part) {
    const Raised raised = raised_by([&] { read_run(path); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.says(part));
  };
  refused(f.d / "missing", "expected a run directory, found nothing");
  refused(f.path(), "found none of these files in it");
  f.write("metrics.jsonl", metrics_line(1, "2") + "no json\n" + metrics_line(2, "2"));
  refused(f.d / "metrics.jsonl", "found a file");
  refused(f.path(), "metrics.jsonl:2: ");
  f.write("metrics.jsonl", metrics_line(1, "2"));
  f.write("journal.jsonl", "{}\n[]\n");
  refused(f.path(), "journal.jsonl:2: ");
  f.write("journal.jsonl", "{}\n");
  f.write("plan.json", "{");
  refused(f.path(), "plan.json");
  f.write("plan.json", "[]");
  refused(f.path(), "plan.json: expected an object");
  f.write("plan.json",
          "{\"memory\": [1, {\"lines\": 3}, {\"lines\": [null, {\"bytes\": \"x\"}]}]}");
  CHECK(read_run(f.path()).memory.size() == 3);
}

TEST_CASE("of many events the first and the last are kept, of many layers none") {
  RunFiles f;
  std::string journal;
  for (int i = 0; i < 5000; ++i) {
    journal += R"({"event": "warning", "message": ")" + std::to_string(i) + "\"}\n";
  }
  f.write("journal.jsonl", journal);
  const JournalHistory j = read_run(f.path()).journal;
  CHECK(j.warnings == 5000);
  CHECK(j.events.size() < 500);
  CHECK(static_cast<int64_t>(j.events.size()) + j.events_left_out == 5000);
  CHECK(j.events.front().details == "0");
  CHECK(j.events.at(j.events_of_beginning - 1).details == "59");
  CHECK(j.events.back().details == "4999");

  std::string loads = "1.5";
  for (int i = 0; i < 1500; ++i) loads += ", 1.5";
  f.write("metrics.jsonl", R"({"step": 1, "expert_load": [)" + loads + "]}\n");
  const Raised raised = raised_by([&] { read_run(f.path()); });
  CHECK(raised.says("metrics.jsonl:1: more than 1024 layers"));
}

TEST_CASE("what the last start of the run came to") {
  RunFiles f;
  const auto end_of = [&](const std::string& events) {
    f.write("journal.jsonl", events);
    return read_run(f.path()).journal.end;
  };
  const std::string start = "{\"event\": \"start\", \"steps\": 4}\n";
  const std::string signal = "{\"event\": \"signal\", \"signal\": 15, \"step\": 2}\n";
  CHECK(end_of(start) == RunEnd::unknown);
  CHECK(end_of(start + signal) == RunEnd::signal);
  CHECK(end_of(start + signal + "{\"event\": \"resume\", \"step\": 2}\n") == RunEnd::unknown);
  CHECK(end_of(start + "{\"event\": \"finished\", \"step\": 4}\n") == RunEnd::finished);
}
