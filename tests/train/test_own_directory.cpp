// Whose a run directory is: results that no state vouches for, directories that vanish under a run.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "train/training_fixture.h"

namespace hearth::test {
namespace {

TEST_CASE("own directory: a result without a state is that of the run that ended there") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.steps = 2;
  config.final_state = false;
  REQUIRE(f.run(config) == ExitCode::done);
  REQUIRE(f.root("run") == "none");
  const std::string result = f.result("run");
  const auto journal = f.lines("run/journal.jsonl");
  RecordingReporter reporter;
  CHECK(train(config, reporter) == ExitCode::done);
  CHECK(reporter.steps.empty());

  TrainConfig other = config;
  other.recorded[0].value = "0.02";
  Raised raised = raised_by([&] { f.run(other); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--lr was '0.01'"));
  const std::string rows = read_file(f.dir / "rows.jsonl");
  f.write(f.dir / "rows.jsonl", rows + "{\"text\": \"more\"}\n");
  raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("rows.jsonl"));
  f.write(f.dir / "rows.jsonl", rows);
  CHECK(f.lines("run/journal.jsonl") == journal);

  // Where the journal does not tell, the run is made again.
  f.write(f.dir / "run/journal.jsonl", "");
  CHECK(train(config, reporter) == ExitCode::done);
  CHECK(reporter.steps.size() == 2);
  CHECK(f.result("run") == result);
}

TEST_CASE("own directory: metrics without a journal are a run's, too") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.steps = 2;
  config.final_state = false;
  REQUIRE(f.run(config) == ExitCode::done);
  const std::string result = f.result("run");
  remove_file(f.dir / "run/journal.jsonl");
  REQUIRE(file_info(f.dir / "run/metrics.jsonl").kind == FileKind::regular);
  RecordingReporter reporter;
  CHECK(train(config, reporter) == ExitCode::done);
  CHECK(reporter.steps.size() == 2);
  CHECK(f.result("run") == result);
}

TEST_CASE("own directory: a finished run that names a state of another run has ended") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("other")) == ExitCode::done);
  TrainConfig config = f.config("run");
  config.final_state = false;
  REQUIRE(f.run(config) == ExitCode::done);
  const std::string result = f.result("run"), other = f.root("other");
  config.resume = ResumeMode::from_directory;
  config.resume_from = f.dir / "other";
  RecordingReporter reporter;
  CHECK(train(config, reporter) == ExitCode::done);
  CHECK(reporter.steps.empty());
  CHECK(f.result("run") == result);
  CHECK(f.root("other") == other);
}

TEST_CASE("own directory: a run that would end before its saved state is refused") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.steps = 4;
  REQUIRE(f.run(config) == ExitCode::done);
  const std::string result = f.result("run"), root = f.root("run");
  config.steps = 2;
  config.allow_change = {"steps"};
  const Raised raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("would end at step 2"));
  CHECK(raised.says("step-00000004 is already at step 4"));
  CHECK(f.result("run") == result);
  CHECK(f.root("run") == root);
}

TEST_CASE("own directory: a directory 'model' that no run left is not taken for a result") {
  TrainingFixture f;
  std::filesystem::create_directories(f.dir / "run/model");
  f.write(f.dir / "run/model/notes.txt", "mine");
  const Raised raised = raised_by([&] { f.run(f.config("run")); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("no run left"));
  CHECK(read_file(f.dir / "run/model/notes.txt") == "mine");
  CHECK_FALSE(std::filesystem::exists(f.dir / "run/metrics.jsonl"));
}

TEST_CASE("own directory: a run whose directory was moved or removed ends with 4") {
  for (const bool moved : {true, false}) {
    TrainingFixture f;
    TrainConfig config = f.config("run");
    config.save_every.steps = 2;
    RecordingReporter reporter;
    reporter.on_step = [&](const StepMetrics& m) {
      if (m.step != 5) return;
      if (moved) {
        std::filesystem::rename(f.dir / "run", f.dir / "moved");
      } else {
        // A save is under way and may make files meanwhile.
        for (std::error_code failed; std::filesystem::exists(f.dir / "run");) {
          std::filesystem::remove_all(f.dir / "run", failed);
        }
      }
    };
    const Raised raised = raised_by([&] { train(config, reporter); });
    CHECK(raised.code == ExitCode::storage);
    CHECK(raised.says("moved or removed"));
    CHECK(reporter.steps.size() == 6);
    CHECK_FALSE(std::filesystem::exists(f.dir / "run/model"));
    CHECK_FALSE(std::filesystem::exists(f.dir / "run/metrics.jsonl"));
    if (moved) {
      CHECK((f.root("moved").starts_with("2 ") || f.root("moved").starts_with("4 ")));
      config.out = f.dir / "moved";
    }
    REQUIRE(f.run(config) == ExitCode::done);
  }
}

TEST_CASE("own directory: all options that changed are named at once") {
  TrainingFixture f;
  REQUIRE(f.run_until(f.config("run"), 2) == ExitCode::stopped);
  TrainConfig other = f.config("run");
  other.recorded[0].value = "0.02";
  other.recorded[1].value = "64";
  const Raised raised = raised_by([&] { f.run(other); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--lr was '0.01' when the state was saved and is '0.02' now"));
  CHECK(raised.says("--seq-len was '96' and is '64' now"));
  CHECK(raised.says("--allow-change lr,seq-len"));
}

}  // namespace
}  // namespace hearth::test
