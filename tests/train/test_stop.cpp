// A request to stop at any moment of a run: exit code 75, whole states, and the same end later.
#include <atomic>
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "support/failing_calls.h"
#include "support/path_calls.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

/// Raises SIGTERM at the n-th file operation.
class SignallingCalls : public FailingCalls {
 public:
  explicit SignallingCalls(int at) : at_(at) {}
  void no_more() { sent_ = true; }
  int open(const char* path, int flags, unsigned mode) override {
    return tick(), FailingCalls::open(path, flags, mode);
  }
  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override {
    return tick(), FailingCalls::pread(fd, buffer, bytes, offset);
  }
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override {
    return tick(), FailingCalls::pwrite(fd, buffer, bytes, offset);
  }
  int64_t append(int fd, const void* buffer, size_t bytes) override {
    return tick(), FailingCalls::append(fd, buffer, bytes);
  }
  int rename(const char* from, const char* to, bool replace) override {
    return tick(), FailingCalls::rename(from, to, replace);
  }

 private:
  void tick() {
    if (count() < at_ || sent_.exchange(true)) return;
    std::raise(SIGTERM);  // listened to since the first run of this process
  }

  int at_;
  std::atomic<bool> sent_{false};
};

/// A run with states, evaluation and a result that is there already.
TrainConfig busy(const TrainingFixture& f, const std::string& out, const std::string& devices) {
  TrainConfig config = f.config(out);
  config.devices = devices;
  config.steps = 4;
  config.save_every.steps = 2;
  config.eval_data = {f.dir / "rows.jsonl"};
  config.eval_every.steps = 2;
  config.eval_at_start = true;
  return config;
}

/// How a run ended, by its code or its error.
ExitCode ended(TrainingFixture& f, const TrainConfig& config) {
  ExitCode code = ExitCode::done;
  const Raised raised = raised_by([&] { code = f.run(config); });
  return raised.code == ExitCode::done ? code : raised.code;
}

/// Stops runs at so many file operations, spread over a run.
void stop_at(int instants, const std::string& devices = "host") {
  TrainingFixture f;
  REQUIRE(f.run(busy(f, "whole", "host")) == ExitCode::done);
  FailingCalls counted;  // whose syncs are free
  const FileCallsOverride quick(counted);
  REQUIRE(f.run(busy(f, "counted", devices)) == ExitCode::done);
  CHECK(f.root("counted") == f.root("whole"));
  const int operations = counted.count();
  int stopped = 0;
  for (int n = 1; n < operations; n += operations / instants) {
    const std::string out = "run" + std::to_string(n);
    INFO("signal at file operation " << n << " of " << operations);
    {
      SignallingCalls calls(n);
      const FileCallsOverride guard(calls);
      const ExitCode code = ended(f, busy(f, out, devices));
      calls.no_more();
      CHECK((code == ExitCode::stopped || code == ExitCode::done));
      stopped += code == ExitCode::stopped;
      // All that was done is saved.
      if (file_info(f.dir / (out + "/metrics.jsonl")).kind == FileKind::regular) {
        const size_t steps = f.lines(out + "/metrics.jsonl").size();
        if (steps > 0) CHECK(f.root(out).starts_with(std::to_string(steps) + " "));
      }
    }
    REQUIRE(f.run(busy(f, out, devices)) == ExitCode::done);
    CHECK(f.root(out) == f.root("whole"));
    CHECK(f.result(out) == f.result("whole"));
    CHECK(f.lines(out + "/metrics.jsonl").size() == 4);
    remove_tree(f.dir / out);
  }
  CHECK(4 * stopped > 2 * instants);
}

TEST_CASE("stop: at any file operation of a run") { stop_at(kSanitized ? 6 : 16); }
TEST_CASE("stop: at file operations of a run on two devices and the host") {
  stop_at(kSanitized ? 3 : 8, "2xvirtual,host");
}
TEST_CASE("stop: at file operations close to each other", "[.long]") { stop_at(300); }

TEST_CASE("stop: while weights or a state are read nothing is written") {
  TrainingFixture f;
  REQUIRE(f.run_until(f.config("run"), 3) == ExitCode::stopped);
  const std::string journal = read_file(f.dir / "run/journal.jsonl");
  for (const std::string part : {"/base/model.safetensors", "/state/step-00000003/moment1"}) {
    PathCalls calls;
    bool sent = false;
    calls.on_read = [&](const std::string& path) {
      if (!sent && path.find(part) != path.npos) {
        sent = true;
        std::raise(SIGTERM);
      }
      return 0;
    };
    const FileCallsOverride guard(calls);
    const Raised raised = raised_by([&] { f.run(f.config("run")); });
    CHECK(raised.code == ExitCode::stopped);
    CHECK(raised.says("stopped by a signal while"));
    CHECK(read_file(f.dir / "run/journal.jsonl") == journal);
  }
}

TEST_CASE("stop: while the result is written, it is left to the next start") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("whole")) == ExitCode::done);
  for (const bool final_state : {true, false}) {
    const std::string out = final_state ? "with" : "without";
    TrainConfig config = f.config(out);
    config.final_state = final_state;
    PathCalls calls;
    bool sent = false;
    calls.on_write = [&](const std::string& path) {
      if (!sent && path.find("/.tmp-model/") != path.npos) {
        sent = true;
        std::raise(SIGTERM);
      }
      return 0;
    };
    {
      const FileCallsOverride guard(calls);
      CHECK(f.run(config) == ExitCode::stopped);
    }
    CHECK(f.root(out) == f.root("whole"));  // saved all the same
    CHECK(file_info(f.dir / (out + "/model")).kind == FileKind::none);
    REQUIRE(f.run(config) == ExitCode::done);
    CHECK(f.result(out) == f.result("whole"));
  }
}

}  // namespace
}  // namespace hearth::test
