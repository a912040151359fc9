// Whole runs and exports with a call or an allocation failing: the documented code, whole states, and
// the same command ends at the same bits later.
#include <catch2/catch_test_macros.hpp>

#include "budget/plan_time.h"
#include "support/failing_calls.h"
#include "support/faulty_calls.h"
#include "support/memory_disk.h"
#include "train/export.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

const std::string kFailingRoot = "/memory-disk";
const std::string kFailingRun = kFailingRoot + "/run";

std::string root_of_run() {
  const auto state = find_newest_state(kFailingRun, [](const RejectedState&) {});
  return state ? std::to_string(state->step) + " " + state->digest.root.hex() : "none";
}

/// A run of three steps that was stopped after the second, on a disk in memory.
class StoppedRun {
  AssumedRates quick_;

 public:
  TrainingFixture f;
  TrainConfig config = f.config("run");
  std::vector<MemoryDisk::Node> stopped;
  std::string root_of_whole, result_of_whole;

  StoppedRun() {
    config.out = kFailingRun;
    config.steps = 3;
    MemoryDisk whole(kFailingRoot);
    {
      const FileCallsOverride guard(whole);
      REQUIRE(f.run(config) == ExitCode::done);
      root_of_whole = root_of_run();
      result_of_whole = result();
    }
    MemoryDisk disk(kFailingRoot);
    const FileCallsOverride guard(disk);
    REQUIRE(f.run_until(config, 2) == ExitCode::stopped);
    disk.settle();
    stopped = disk.durable_nodes();
  }

  static std::string result() { return read_file(kFailingRun + "/model/model.safetensors"); }

  /// The resume with a call failing; true if there was such a call.
  bool resume_with(int call, int error) {
    INFO("call " << call << " fails with " << error);
    MemoryDisk disk(kFailingRoot, stopped);
    FailingCalls failing(disk);
    failing.fail_at = call;
    failing.error = error;
    FaultyCalls calls(failing);
    {
      const FileCallsOverride guard(calls);
      ExitCode code = ExitCode::done;
      const Raised raised = raised_by([&] { code = f.run(config); });
      if (raised.code != ExitCode::done) code = raised.code;
      INFO(raised.message);
      CHECK((code == ExitCode::done || code == ExitCode::storage));
    }
    const FileCallsOverride guard(disk);
    for (const std::string& name : list_directory(kFailingRun + "/state")) {
      if (step_of_state_directory(name)) verify_state(kFailingRun + "/state/" + name);
    }
    CHECK(f.run(config) == ExitCode::done);
    CHECK(root_of_run() == root_of_whole);
    CHECK(result() == result_of_whole);
    for (const std::string& folder : {kFailingRun, kFailingRun + "/state"}) {
      for (const std::string& name : list_directory(folder)) {
        CHECK((!name.starts_with(".") || name == ".lock"));
      }
    }
    return failing.failed();
  }
};

TEST_CASE("failing calls: some calls of a resume and its run") {
  StoppedRun run;
  int calls = 0;
  for (int call = 1; run.resume_with(call, call % 2 == 0 ? EIO : ENOSPC); call += 37) ++calls;
  CHECK(calls > 4);
}

TEST_CASE("failing calls: every call of a resume and its run", "[.long]") {
  StoppedRun run;
  int calls = 0;
  for (const int error : {EIO, ENOSPC}) {
    for (int call = 1; run.resume_with(call, error); ++call) ++calls;
  }
  WARN(calls << " failing calls");
}

TEST_CASE("failing calls: an export is whole or not there") {
  StoppedRun run;
  const auto sweep = [&](int error, int stride) {
    for (int call = 1;; call += stride) {
      INFO("call " << call << " fails with " << error);
      MemoryDisk disk(kFailingRoot, run.stopped);
      FailingCalls failing(disk);
      failing.fail_at = call;
      failing.error = error;
      ExportConfig config;
      config.from_state = kFailingRun;
      config.model = run.config.model;
      config.out = kFailingRoot + "/exported";
      RecordingReporter reporter;
      FaultyCalls calls(failing);
      Raised raised;
      {
        const FileCallsOverride guard(calls);
        raised = raised_by([&] { export_state(config, reporter); });
      }
      const FileCallsOverride guard(disk);
      CHECK((raised.code == ExitCode::done || raised.code == ExitCode::storage));
      if (raised.code != ExitCode::done) {
        if (file_info(config.out).kind == FileKind::none) export_state(config, reporter);
      }
      CHECK_NOTHROW(Checkpoint(config.out));
      CHECK(list_directory(kFailingRoot) == std::vector<std::string>{"exported", "run"});
      if (!failing.failed()) return call;
    }
  };
  CHECK(sweep(EIO, 41) > 100);
  CHECK(sweep(ENOSPC, 67) > 100);
}

}  // namespace
}  // namespace hearth::test
