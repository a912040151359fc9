// A loss or gradient that is not finite is skipped, counted and told, never hidden.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <tuple>

#include "base/json.h"
#include "numeric_fixture.h"

using namespace hearth;
using namespace hearth::test;

namespace {

/// What a bad step leaves: its line of metrics, its event, its warning.
void check_told(const NumericFixture& f, const std::string& out, const RecordingReporter& reporter,
                const std::vector<int>& bad) {
  const std::vector<std::string> metrics = f.lines(out + "/metrics.jsonl");
  for (size_t i = 0; i < metrics.size(); ++i) {
    const Json line = parse_json(metrics[i], "metrics");
    const auto step = line.find("step")->as_int();
    const bool is_bad = std::count(bad.begin(), bad.end(), step) > 0;
    INFO(metrics[i]);
    CHECK((line.find("loss")->is_null() || line.find("grad_norm")->is_null()) == is_bad);
    CHECK(reporter.steps[i].skipped == is_bad);
  }
  const std::vector<std::string> events = f.events(out, "skipped_step");
  REQUIRE(events.size() == bad.size());
  for (size_t i = 0; i < bad.size(); ++i) {
    CHECK(parse_json(events[i], "journal").find("step")->as_int() == bad[i]);
    const std::string told =
        "step " + std::to_string(bad[i]) + ": the loss or a gradient is not finite";
    CHECK(std::count_if(reporter.warnings.begin(), reporter.warnings.end(),
                        [&](const std::string& w) { return w.starts_with(told); }) == 1);
  }
}

}  // namespace

TEST_CASE("numeric: steps that are not finite change no weight, moment or count of updates") {
  NumericFixture f;
  const PlantedFault token("nan-token-7");
  for (const std::vector<int>& bad :
       std::vector<std::vector<int>>{{}, {1}, {3}, {2, 3}, {1, 2}, {1, 3, 5}}) {
    const std::string out = "run" + std::to_string(bad.empty() ? 0 : bad.back() * 10 + bad.size());
    TrainConfig c = f.poisoned(out, bad);
    c.keep = 10;
    RecordingReporter reporter;
    INFO(out);
    REQUIRE(train(c, reporter) == ExitCode::done);
    check_told(f, out, reporter, bad);
    for (const int step : bad) {
      if (step > 1) CHECK(f.weights_of(out, step) == f.weights_of(out, step - 1));
    }
    for (int step = 2; step <= NumericFixture::kSteps; ++step) {
      if (std::count(bad.begin(), bad.end(), step) > 0) continue;
      CHECK(f.weights_of(out, step) != f.weights_of(out, step - 1));
    }
  }
}

TEST_CASE("numeric: three steps in a row end the run, the last good state is kept") {
  NumericFixture f;
  const PlantedFault token("nan-token-7");
  for (const int64_t keep : {1, 2}) {
    const std::string out = "three" + std::to_string(keep);
    TrainConfig c = f.poisoned(out, {3, 4, 5});
    c.keep = keep;
    RecordingReporter reporter;
    const Raised raised = raised_by([&] { train(c, reporter); });
    CHECK(raised.code == ExitCode::numeric);
    CHECK(raised.message.find("in three steps in a row up to step 5") != std::string::npos);
    check_told(f, out, reporter, {3, 4, 5});
    CHECK(file_info(f.dir / (out + "/model")).kind == FileKind::none);
    // What is there has the weights of step 2, the last good one.
    TrainConfig good = f.poisoned("good" + std::to_string(keep), {3});
    good.keep = 10;
    REQUIRE(f.run(good) == ExitCode::done);
    const auto state = find_newest_state(c.out, [](const RejectedState&) {});
    REQUIRE(state);
    CHECK(f.weights_of(out, state->step) == f.weights_of("good" + std::to_string(keep), 2));
    // Started again, it ends the same way and changes nothing.
    const std::string root = f.root(out);
    CHECK(raised_by([&] { f.run(c); }).code == ExitCode::numeric);
    CHECK(f.root(out) == root);
  }
}

TEST_CASE("numeric: a run whose last step, or every step, is not finite has no result") {
  NumericFixture f;
  const PlantedFault token("nan-token-7");
  for (const std::vector<int>& bad :
       std::vector<std::vector<int>>{{6}, {5, 6}, {1, 2, 3, 4, 5, 6}}) {
    const std::string out = "end" + std::to_string(bad.size());
    RecordingReporter reporter;
    const TrainConfig c = f.poisoned(out, bad);
    CHECK(raised_by([&] { train(c, reporter); }).code == ExitCode::numeric);
    CHECK(file_info(f.dir / (out + "/model")).kind == FileKind::none);
    CHECK(raised_by([&] { f.run(c); }).code == ExitCode::numeric);  // and again
  }
  TrainConfig one = f.poisoned("one", {1});
  one.steps = 1;
  CHECK(raised_by([&] { f.run(one); }).code == ExitCode::numeric);
}

TEST_CASE("numeric: a run with skipped steps resumes to the same bits") {
  NumericFixture f;
  const PlantedFault token("nan-token-7");
  for (const std::vector<int>& bad : std::vector<std::vector<int>>{{3}, {2, 3}}) {
    const std::string n = std::to_string(bad.size());
    REQUIRE(f.run(f.poisoned("whole" + n, bad)) == ExitCode::done);
    for (int64_t stop = 1; stop < NumericFixture::kSteps; ++stop) {
      const std::string out = "stopped" + n + std::to_string(stop);
      const TrainConfig c = f.poisoned(out, bad);
      TrainConfig same = c;  // the content of the data is what counts
      REQUIRE(f.run_until(c, stop) == ExitCode::stopped);
      REQUIRE(f.run(same) == ExitCode::done);
      CHECK(f.root(out) == f.root("whole" + n));
      CHECK(f.result(out) == f.result("whole" + n));
    }
  }
}

TEST_CASE("numeric: a loss, an expert's gradient or a norm alone") {
  NumericFixture f;
  for (const std::string fault : {"infinite-loss", "nan-gradient-of-an-expert", "infinite-norm"}) {
    for (const int compute : {0, 1}) {
      INFO(fault << ", compute " << compute);
      const std::string out = fault + std::to_string(compute);
      TrainConfig c = f.poisoned(out, {});
      c.keep = 10;
      c.compute = compute == 0 ? ComputeChoice::f32 : ComputeChoice::bf16;
      FaultOfSteps faults(fault, {2});
      RecordingReporter reporter;
      reporter.on_step = [&](const StepMetrics& m) { faults.before(m.step + 1); };
      REQUIRE(train(c, reporter) == ExitCode::done);
      check_told(f, out, reporter, {2});
      CHECK(f.weights_of(out, 2) == f.weights_of(out, 1));
      CHECK(f.weights_of(out, 3) != f.weights_of(out, 2));
      if (fault == "nan-gradient-of-an-expert") {  // as it is written: the loss was finite
        CHECK(std::isfinite(reporter.steps[1].loss));
        CHECK(std::isnan(reporter.steps[1].grad_norm));
      }
    }
  }
}

TEST_CASE("numeric: a norm or a square that no f32 holds is skipped, with the norm as it is") {
  NumericFixture f;
  for (const auto& [fault, clip, norm] :
       {std::tuple("norm-beyond-f32", 1.0, 1e39), std::tuple("square-beyond-f32", 0.0, 1e25)}) {
    FaultOfSteps faults(fault, {2});
    RecordingReporter reporter;
    reporter.on_step = [&](const StepMetrics& m) { faults.before(m.step + 1); };
    TrainConfig c = f.poisoned(fault, {});
    c.keep = 10;
    c.max_grad_norm = clip;
    REQUIRE(train(c, reporter) == ExitCode::done);
    CHECK(reporter.steps[1].skipped);
    CHECK(reporter.steps[1].grad_norm == norm);
    CHECK(f.weights_of(fault, 2) == f.weights_of(fault, 1));
    CHECK(f.events(fault, "skipped_step").size() == 1);
  }
  // The same square after clipping is none.
  TrainConfig c = f.poisoned("clipped", {});
  FaultOfSteps faults("square-beyond-f32", {2});
  RecordingReporter reporter;
  reporter.on_step = [&](const StepMetrics& m) { faults.before(m.step + 1); };
  REQUIRE(train(c, reporter) == ExitCode::done);
  CHECK_FALSE(reporter.steps[1].skipped);
}

TEST_CASE("numeric: an update that overflows ends the run, the states before it are kept") {
  NumericFixture f;
  for (const bool final_state : {true, false}) {
    for (const int steps : {7, 10}) {
      const std::string out = "overflow" + std::to_string(steps) + (final_state ? "" : "-none");
      TrainConfig c = f.poisoned(out, {});
      c.steps = steps;
      c.trainable = {"*embed_tokens*"};
      c.lr = c.weight_decay = 1000;  // a step is times a million: beyond f32 in the seventh
      c.lr_schedule = LrSchedule::constant;
      c.final_state = final_state;
      if (!final_state) c.save_every.steps = steps == 7 ? 0 : 6;
      const Raised raised = raised_by([&] { f.run(c); });
      CHECK(raised.code == ExitCode::numeric);
      INFO(raised.message);
      CHECK(raised.message.find("not finite") != std::string::npos);
      CHECK(file_info(f.dir / (out + "/model")).kind == FileKind::none);
      if (!final_state && steps == 7) continue;
      const auto newest = find_newest_state(c.out, [](const RejectedState&) { CHECK(false); });
      REQUIRE(newest);
      CHECK(newest->step == 6);
      const std::string root = f.root(out);
      CHECK(raised_by([&] { f.run(c); }).code == ExitCode::numeric);  // and again
      CHECK(f.root(out) == root);
    }
  }
}
