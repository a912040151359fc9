// Saves that are written while the next steps compute: what is published is the step's state, an
// update never overtakes a write, and a save that fails is told and survived.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <thread>

#include "base/sanitized.h"
#include "state/background_save.h"
#include "support/path_calls.h"
#include "support/planted.h"
#include "train/state_fixture.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

bool of_state(const std::string& path) { return path.find("/state/.tmp-step-") != path.npos; }

/// Writes of states take so long that a save lasts longer than a step.
class SlowSaves : public PathCalls {
 public:
  explicit SlowSaves(int microseconds = kSanitized ? 8000 : 400) {
    on_write = [microseconds](const std::string& path) {
      if (of_state(path)) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
      return 0;
    };
  }
};

TrainConfig saving_every_step(const TrainingFixture& f, const std::string& out) {
  TrainConfig config = f.config(out);
  config.save_every.steps = 1;
  config.keep = 20;
  config.digest_every = 1;
  return config;
}

/// Roots by step as metrics.jsonl has them, taken from memory at once.
std::vector<std::string> roots_of_metrics(const TrainingFixture& f, const std::string& out) {
  std::vector<std::string> roots;
  for (const std::string& line : f.lines(out + "/metrics.jsonl")) {
    roots.push_back(parse_json(line, "metrics").find("state_digest")->as_string());
  }
  return roots;
}

int events(const TrainingFixture& f, const std::string& out, const std::string& name) {
  int n = 0;
  for (const std::string& line : f.lines(out + "/journal.jsonl")) {
    n += parse_json(line, "journal").find("event")->as_string() == name;
  }
  return n;
}

TEST_CASE("background save: every state is the one of its step, and no two are the same") {
  TrainingFixture f;
  SlowSaves slow;
  const FileCallsOverride guard(slow);
  REQUIRE(f.run(saving_every_step(f, "run")) == ExitCode::done);
  const std::vector<std::string> roots = roots_of_metrics(f, "run");
  REQUIRE(roots.size() == 8);
  std::vector<StateDigest::Item> last;
  double waited = 0;
  for (int64_t step = 1; step <= 8; ++step) {
    const SavedState state = verify_state(f.dir / ("run/state/" + state_directory_name(step)));
    CHECK(state.digest.root.hex() == roots[static_cast<size_t>(step - 1)]);
    for (size_t i = 0; i < last.size(); ++i) {
      INFO(last[i].name << " at step " << step);
      CHECK_FALSE(state.digest.components[i] == last[i]);
    }
    last = step > 1 ? state.digest.components : last;  // step 1 has a rate of 0
  }
  for (const std::string& line : f.lines("run/journal.jsonl")) {
    const Json event = parse_json(line, "journal");
    if (const Json* s = event.find("waited_s")) waited += s->as_double();
  }
  CHECK(events(f, "run", "state_saved") == 8);
  if (!kSanitized) CHECK(waited > 0);  // the steps did overtake the writes
}

TEST_CASE("background save: an update that did not wait would be seen") {
  TrainingFixture f;
  // The save of step 1 is held at its second tensor until step 2, which does not wait, is over.
  std::atomic<int64_t> step{0};
  std::atomic<int> writes{0};
  PathCalls calls;
  calls.on_write = [&](const std::string& path) {
    if (path.find("/.tmp-step-00000001/") != path.npos && ++writes > 10) {
      for (int i = 0; i < 60000 && step < 2; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    return 0;
  };
  const auto run = [&](const std::string& out) {
    step = 0;
    writes = 0;
    TrainConfig config = saving_every_step(f, out);
    config.save_every.steps = 100;
    config.save_every.seconds = 0;  // not due again before the first has ended
    config.warmup = 0;
    config.steps = 2;
    RecordingReporter reporter;
    reporter.on_step = [&](const StepMetrics& m) { step = m.step; };
    train(config, reporter);
  };
  const FileCallsOverride guard(calls);
  const PlantedFault fault("update-does-not-wait");
  CHECK_THROWS_AS(run("run"), std::logic_error);
  // Nor would it pass if the save itself did not look: what is on the disk has another digest.
  const PlantedFault blind("save-takes-changed-memory");
  run("blind");
  CHECK_FALSE(damage_of(f.dir / "blind/state/step-00000001").empty());
  CHECK(damage_of(f.dir / "blind/state/step-00000002").empty());
}

TEST_CASE("background save: an update waits for what it changes, and for no more") {
  const TemporaryDirectory out;
  SavedRun run;
  PathCalls calls;
  std::atomic<int> allowed{0}, written{0};
  calls.on_write = [&](const std::string& path) {
    if (!of_state(path)) return 0;
    while (written >= allowed) std::this_thread::yield();
    ++written;
    return 0;
  };
  const FileCallsOverride guard(calls);
  BackgroundSave saves;
  CHECK_FALSE(saves.in_flight());
  saves.wait_until_safe(7);  // of none
  saves.begin(
      std::make_unique<StateSave>(run.registry, SaveRequest{out.path(), 1, {2}, kExtra, {}}));
  CHECK(saves.in_flight());
  CHECK_FALSE(saves.end(false));
  // Two writes of a header for each of three files, then the first view of each.
  allowed = 6 + 3;
  saves.wait_until_safe(1);
  CHECK(written == 9);
  run.embedding[0] = 99;  // the first view of the weights may change now
  run.history[0] = 99;
  run.cursor = "changed";  // and what was copied, too
  CHECK_FALSE(saves.end(false));
  allowed = 1000;
  saves.wait_until_safe(3);
  run.head[0] = 99;
  const auto outcome = saves.end(true);
  REQUIRE(outcome);
  CHECK(outcome->failure.empty());
  CHECK(outcome->step == 1);
  CHECK_FALSE(saves.in_flight());
  CHECK_FALSE(saves.end(true));
  SavedRun before;
  CHECK(verify_state(out / "state/step-00000001").digest == state_digest(before.registry));
}

TEST_CASE("background save: one in flight ends before its owner does") {
  const TemporaryDirectory out;
  SavedRun run;
  SlowSaves slow;
  const FileCallsOverride guard(slow);
  {
    BackgroundSave saves;
    saves.begin(
        std::make_unique<StateSave>(run.registry, SaveRequest{out.path(), 1, {2}, kExtra, {}}));
    CHECK(saves.in_flight());
  }
  CHECK(verify_state(out / "state/step-00000001").digest == state_digest(run.registry));
}

TEST_CASE("background save: one that fails is told, and the run goes on") {
  TrainingFixture f;
  REQUIRE(f.run(saving_every_step(f, "whole")) == ExitCode::done);
  PathCalls calls;
  calls.on_write = [](const std::string& path) {
    return of_state(path) && path.find("-00000004/") != path.npos ? -ENOSPC : 0;
  };
  const FileCallsOverride guard(calls);
  RecordingReporter reporter;
  REQUIRE(train(saving_every_step(f, "run"), reporter) == ExitCode::done);
  REQUIRE(reporter.warnings.size() == 1);
  CHECK(reporter.warnings[0].find("step 4 could not be saved") != std::string::npos);
  CHECK(reporter.warnings[0].find("No space left on device") != std::string::npos);
  CHECK(events(f, "run", "save_failed") == 1);
  CHECK(events(f, "run", "state_saved") == 7);
  CHECK(list_directory(f.dir / "run/state").size() == 7);
  CHECK(f.root("run") == f.root("whole"));
}

TEST_CASE("background save: three failures in a row, or the last, end the run with 4") {
  TrainingFixture f;
  REQUIRE(f.run(saving_every_step(f, "whole")) == ExitCode::done);
  for (const int from : {3, 8}) {
    const std::string out = "run" + std::to_string(from);
    RecordingReporter reporter;
    {
      PathCalls calls;
      calls.on_write = [from](const std::string& path) {
        const size_t at = path.find("/state/.tmp-step-0000000");
        return at != path.npos && path[at + 24] - '0' >= from ? -EIO : 0;
      };
      const FileCallsOverride guard(calls);
      const Raised raised = raised_by([&] { train(saving_every_step(f, out), reporter); });
      CHECK(raised.code == ExitCode::storage);
      CHECK(raised.says("Input/output error"));
      CHECK(raised.says("three saves in a row") == (from == 3));
    }
    CHECK(file_info(f.dir / (out + "/model")).kind == FileKind::none);
    CHECK(f.root(out).starts_with(std::to_string(from - 1) + " "));
    CHECK(list_directory(f.dir / (out + "/state")).size() == static_cast<size_t>(from - 1));
    // Later the same command goes on, to the same bits.
    REQUIRE(f.run(saving_every_step(f, out)) == ExitCode::done);
    CHECK(f.root(out) == f.root("whole"));
    CHECK(f.result(out) == f.result("whole"));
  }
}

TEST_CASE(
    "background save: a failed save does not hold back the result of a run without a last one") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.save_every.steps = 5;
  config.final_state = false;
  PathCalls calls;
  calls.on_write = [](const std::string& path) { return of_state(path) ? -EIO : 0; };
  const FileCallsOverride guard(calls);
  const Raised raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("the result is complete"));
  CHECK_NOTHROW(Checkpoint(f.dir / "run/model"));
}

TEST_CASE("background save: a stop while one is in flight waits for it") {
  TrainingFixture f;
  REQUIRE(f.run(saving_every_step(f, "whole")) == ExitCode::done);
  SlowSaves slow(1000);
  const FileCallsOverride guard(slow);
  TrainConfig config = f.config("run");
  config.save_every.steps = 3;
  REQUIRE(f.run_until(config, 4) == ExitCode::stopped);
  CHECK(list_directory(f.dir / "run/state") ==
        std::vector<std::string>{"step-00000003", "step-00000004"});
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(f.root("run") == f.root("whole"));
}

}  // namespace
}  // namespace hearth::test
