// What a start finds in a run directory: its end, damaged states, changed options and content.
#include <catch2/catch_test_macros.hpp>

#include "train/resume.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

/// Flips a bit in a state of the directory "run".
void damage(const TrainingFixture& f, const std::string& state) {
  const std::string path = f.dir / ("run/state/" + state + "/moment1.safetensors");
  std::string content = read_file(path);
  content[content.size() / 2] ^= 1;
  remove_file(path);
  f.write(path, content);
}

int events(const TrainingFixture& f, const std::string& name) {
  int n = 0;
  for (const std::string& line : f.lines("run/journal.jsonl")) {
    n += line.find("\"" + name + "\"") != std::string::npos;
  }
  return n;
}

TEST_CASE("resume: the same command after the end runs no step") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("run")) == ExitCode::done);
  const auto before = f.lines("run/metrics.jsonl");
  RecordingReporter reporter;
  CHECK(train(f.config("run"), reporter) == ExitCode::done);
  CHECK(reporter.steps.empty());
  CHECK(f.lines("run/metrics.jsonl") == before);
}

TEST_CASE("resume: a finished run whose newest state is damaged makes it again") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.save_every.steps = 2;
  REQUIRE(f.run(config) == ExitCode::done);
  const std::string root = f.root("run"), result = f.result("run");
  damage(f, "step-00000008");
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  REQUIRE(reporter.warnings.size() == 1);
  CHECK(reporter.warnings[0].find("step-00000008/moment1.safetensors") != std::string::npos);
  CHECK(events(f, "state_rejected") == 1);
  CHECK(reporter.steps.size() == 2);  // from step 6
  CHECK(f.root("run") == root);
  CHECK(f.result("run") == result);

  // Not one whole: as for any other run, and nothing is touched.
  damage(f, "step-00000006");
  damage(f, "step-00000008");
  const auto journal = f.lines("run/journal.jsonl");
  const Raised raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("none of it is whole"));
  CHECK(f.lines("run/journal.jsonl") == journal);
  CHECK(f.result("run") == result);
}

TEST_CASE("resume: a run that ended without saving its last state has ended") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.save_every.steps = 3;
  config.final_state = false;
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(f.root("run").starts_with("6 "));
  RecordingReporter reporter;
  CHECK(train(config, reporter) == ExitCode::done);
  CHECK(reporter.steps.empty());
  // Where the journal does not tell, the steps are made again.
  const std::string result = f.result("run");
  remove_file(f.dir / "run/journal.jsonl");
  CHECK(train(config, reporter) == ExitCode::done);
  CHECK(reporter.steps.size() == 2);
  CHECK(f.result("run") == result);
  // A longer run goes on, and one that was stopped in it, too.
  config.steps = 12;
  REQUIRE(f.run_until(config, 10) == ExitCode::stopped);
  RecordingReporter last;
  CHECK(train(config, last) == ExitCode::done);
  CHECK(last.steps.size() == 2);
}

TEST_CASE("resume: another value of an option is no leave for other content") {
  TrainingFixture f;
  const std::string rows = read_file(f.dir / "rows.jsonl");
  const auto with_data = [&](const std::vector<std::string>& files, bool allowed) {
    TrainConfig config = f.config("run");
    config.data.clear();
    Json list = JsonArray{};
    for (const std::string& file : files) {
      config.data.push_back(f.dir / file);
      list.push_back(f.dir / file);
    }
    config.recorded.push_back({"data", list.dump(), false});
    if (allowed) config.allow_change = {"data"};
    return config;
  };
  REQUIRE(f.run_until(with_data({"rows.jsonl"}, false), 2) == ExitCode::stopped);
  const auto refusal = [&](const std::vector<std::string>& files, bool allowed) {
    return raised_by([&] { f.run(with_data(files, allowed)); });
  };
  f.write(f.dir / "more.jsonl", rows + rows);
  CHECK(refusal({"more.jsonl"}, false).code == ExitCode::usage);
  f.write(f.dir / "rows.jsonl", rows + "{\"text\": \"more\"}\n");
  for (const bool allowed : {false, true}) {
    const Raised raised = refusal({"rows.jsonl"}, allowed);
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.says("rows.jsonl"));
  }
  const Raised kept = refusal({"more.jsonl", "rows.jsonl"}, true);
  CHECK(kept.code == ExitCode::input);
  CHECK(kept.says("rows.jsonl"));

  f.write(f.dir / "rows.jsonl", rows);
  RecordingReporter reporter;
  REQUIRE(train(with_data({"more.jsonl", "rows.jsonl"}, true), reporter) == ExitCode::done);
  REQUIRE(reporter.warnings.size() == 1);
  CHECK(reporter.warnings[0].find("data: [") != std::string::npos);
  CHECK(reporter.warnings[0].find("more.jsonl") != std::string::npos);
  CHECK(events(f, "resume") == 1);
  CHECK(read_file(f.dir / "run/journal.jsonl").find("data: [") != std::string::npos);
}

TEST_CASE("resume: other evaluation data by name, never other content of the same") {
  TrainingFixture f;
  f.write(f.dir / "eval.jsonl", "{\"text\": \"first\"}\n");
  f.write(f.dir / "other.jsonl", "{\"text\": \"second\"}\n");
  const auto with_eval = [&](const std::string& file) {
    TrainConfig config = f.config("run");
    config.eval_data = {f.dir / file};
    config.allow_change = {"eval-data"};
    config.recorded.push_back({"eval-data", f.dir / file, false});
    return config;
  };
  REQUIRE(f.run_until(with_eval("eval.jsonl"), 2) == ExitCode::stopped);
  f.write(f.dir / "eval.jsonl", "{\"text\": \"changed\"}\n");
  const Raised raised = raised_by([&] { f.run(with_eval("eval.jsonl")); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("eval.jsonl"));
  CHECK(f.run(with_eval("other.jsonl")) == ExitCode::done);
}

TEST_CASE("resume: what is refused, and leaves untouched") {
  TrainingFixture f;
  REQUIRE(f.run_until(f.config("run"), 3) == ExitCode::stopped);
  const auto journal = f.lines("run/journal.jsonl");

  TrainConfig other = f.config("run");
  other.recorded[0].value = "0.02";
  Raised raised = raised_by([&] { f.run(other); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--lr"));
  CHECK(raised.says("0.01"));
  CHECK(raised.says("0.02"));

  TrainConfig never = f.config("run");
  never.resume = ResumeMode::never;
  CHECK(raised_by([&] { f.run(never); }).code == ExitCode::usage);

  const std::string rows = read_file(f.dir / "rows.jsonl");
  f.write(f.dir / "rows.jsonl", rows + "{\"text\": \"more\"}\n");
  raised = raised_by([&] { f.run(f.config("run")); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("rows.jsonl"));
  f.write(f.dir / "rows.jsonl", rows);
  CHECK(f.lines("run/journal.jsonl") == journal);

  other.allow_change = {"lr"};
  CHECK(f.run(other) == ExitCode::done);
}

TEST_CASE("resume: a damaged newest state is passed over, none whole ends with 4") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("whole")) == ExitCode::done);
  TrainConfig config = f.config("run");
  config.save_every.steps = 2;
  REQUIRE(f.run_until(config, 5) == ExitCode::stopped);  // states of steps 4 and 5
  damage(f, "step-00000005");
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  CHECK(reporter.steps.front().step == 5);
  REQUIRE(reporter.warnings.size() == 1);
  CHECK(reporter.warnings[0].find("step-00000005/moment1.safetensors: is damaged between bytes") !=
        std::string::npos);
  CHECK(f.root("run") == f.root("whole"));
  CHECK(f.result("run") == f.result("whole"));
  CHECK(events(f, "state_rejected") == 1);

  // Nothing whole is left of a run that is not at its end: nothing is touched.
  remove_tree(f.dir / "run/model");
  for (const std::string& state : list_directory(f.dir / "run/state")) {
    if (step_of_state_directory(state)) damage(f, state);
  }
  const auto journal = f.lines("run/journal.jsonl");
  const Raised raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("none of it is whole"));
  CHECK(f.lines("run/journal.jsonl") == journal);
  CHECK_FALSE(file_info(f.dir / "run/model").kind == FileKind::directory);
}

TEST_CASE("resume: a state of another run directory may be resumed") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("whole")) == ExitCode::done);
  REQUIRE(f.run_until(f.config("first"), 5) == ExitCode::stopped);
  TrainConfig config = f.config("second");
  config.resume = ResumeMode::from_directory;
  config.resume_from = f.dir / "first/state/step-00000004";
  const Raised missing = raised_by([&] { f.run(config); });
  CHECK(missing.code == ExitCode::usage);
  CHECK(missing.says("step-00000004"));
  config.resume_from = f.dir / "first/state/step-00000005";
  const auto content = read_file(config.resume_from + "/moment1.safetensors");
  std::string bad = content;
  bad[bad.size() / 2] ^= 1;
  TrainingFixture::write(config.resume_from + "/moment1.safetensors", bad);
  const Raised raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("moment1.safetensors: is damaged between bytes"));
  CHECK(file_info(config.out).kind == FileKind::none);

  TrainingFixture::write(config.resume_from + "/moment1.safetensors", content);
  config.resume_from += "/";
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(f.root("second") == f.root("whole"));
  CHECK(f.lines("second/metrics.jsonl").size() == 3);
}

TEST_CASE("resume: another build or machine is told and kept, not refused") {
  TrainingFixture f;
  const TrainConfig config = f.config("run");
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  const SavedState state = open_state(f.dir / "run/state/step-00000003");
  const Json& level = *state.extra.find("determinism");
  CHECK(level.find("level")->as_string() == "replay-exact");
  CHECK(level.find("changes")->as_array().empty());
  const RunIdentity now = identity_in(state.extra);
  CHECK(compare(now, now, {}, "manifest.json").empty());

  Json other = state.extra;
  other["machine"]["instructions"] = "another";
  other["build"]["compiler"] = "another";
  const std::vector<IdentityChange> changes = compare(identity_in(other), now, {}, "manifest.json");
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].text.starts_with("build compiler: 'another' -> "));
  CHECK(changes[1].text.starts_with("machine instructions: 'another' -> "));

  // Changes stay in the record of all later states.
  SavedState second = state;
  second.extra["determinism"] = determinism_record(&state, changes);
  second.step = 7;
  const Json record =
      determinism_record(&second, {{"lr: 1 -> 2"}, {"devices: host -> virtual", true}});
  const JsonArray& list = record.find("changes")->as_array();
  REQUIRE(list.size() == 3);
  CHECK(list[0].find("after_step")->as_int() == 3);
  CHECK(list[2].find("after_step")->as_int() == 7);
  CHECK(list[2].find("change")->as_string() == "lr: 1 -> 2");
}

}  // namespace
}  // namespace hearth::test
