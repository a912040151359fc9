// What a run does again and again, by steps, by time or by epochs, and the time that it may take.
#include <catch2/catch_test_macros.hpp>

#include "record/journal.h"
#include "support/raises.h"
#include "train/due.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

TEST_CASE("intervals: by steps, by time, at the end of an epoch, or never") {
  const Interval every_third{.steps = 3, .seconds = {}};
  CHECK(is_due(every_third, 6, false, 0));
  CHECK_FALSE(is_due(every_third, 7, true, 1e9));
  const Interval timed{.steps = {}, .seconds = 60};
  CHECK(is_due(timed, 1, false, 60));
  CHECK_FALSE(is_due(timed, 1, true, 59));
  const Interval epochs{.steps = {}, .seconds = {}, .epoch = true};
  CHECK(is_due(epochs, 1, true, 0));
  CHECK_FALSE(is_due(epochs, 1, false, 1e9));
  CHECK_FALSE(is_due(Interval{}, 1, true, 1e9));
}

/// The steps whose lines in metrics.jsonl have an evaluation.
std::vector<int64_t> evaluated(const TrainingFixture& f, const std::string& out) {
  std::vector<int64_t> steps;
  for (const std::string& line : f.lines(out + "/metrics.jsonl")) {
    const Json step = parse_json(line, "metrics.jsonl");
    if (step.find("eval_loss") != nullptr) steps.push_back(step.find("step")->as_int());
  }
  return steps;
}

TEST_CASE("intervals: a run saves and evaluates at the end of each epoch") {
  TrainingFixture f;
  TrainConfig config = f.config("even");
  config.packing = false;  // 24 rows, 6 a step
  config.eval_data = {f.dir / "rows.jsonl"};
  config.eval_every.epoch = true;
  config.save_every.epoch = true;
  config.final_state = false;
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(evaluated(f, "even") == std::vector<int64_t>{4, 8});
  CHECK(file_info(f.dir / "even/state/step-00000004").kind == FileKind::directory);
  CHECK(f.root("even").starts_with("8 "));
  std::string before;
  for (const std::string& line : f.lines("even/metrics.jsonl")) {
    const Json step = parse_json(line, "metrics.jsonl");
    CHECK(step.find("epoch")->as_double() ==
          static_cast<double>(step.find("step")->as_int()) / 4.0);
    const std::string time = step.find("time")->as_string();
    CHECK(time.size() == std::string("2024-06-07T12:34:56.789Z").size());
    CHECK(before <= time);
    before = time;
  }
  const JournaledRun journaled = read_journaled_run(f.dir / "even/journal.jsonl");
  const Json last = parse_json(f.lines("even/metrics.jsonl").back(), "metrics.jsonl");
  CHECK(journaled.loss_at(8) == last.find("eval_loss")->as_double());

  // Steps that reach into the next epoch are the last of one.
  config.out = f.dir / "odd";
  config.grad_accum = 5;  // 10 a step: 24 ends in step 3, 48 in step 5, 72 in step 8
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(evaluated(f, "odd") == std::vector<int64_t>{3, 5, 8});
}

TEST_CASE("intervals: a run whose time is over saves and goes on at the next start") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.max_time = 1e-9;
  for (int64_t step = 1; step < 8; ++step) {
    REQUIRE(f.run(config) == ExitCode::stopped);
    CHECK(f.root("run").starts_with(std::to_string(step) + " "));
  }
  CHECK(read_file(f.dir / "run/journal.jsonl").find("\"max_time\"") != std::string::npos);
  REQUIRE(f.run(config) == ExitCode::done);  // the last step
  REQUIRE(f.run(f.config("straight")) == ExitCode::done);
  CHECK(f.root("run") == f.root("straight"));
  CHECK(f.result("run") == f.result("straight"));
}

}  // namespace
}  // namespace hearth::test
