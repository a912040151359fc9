// What a power loss may leave of a whole run: its newest state has all its lines of metrics, small
// files and the result are whole or not there, and the same command ends at the same bits.
#include <atomic>
#include <catch2/catch_test_macros.hpp>

#include "budget/plan_time.h"
#include "support/crash_states.h"
#include "support/faulty_calls.h"
#include "support/planted.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

const std::string kWholeRoot = "/memory-disk";
const std::string kWholeRun = kWholeRoot + "/run";

/// Promises a step once the rename that publishes its state is durable.
class Promising : public LayeredCalls {
 public:
  explicit Promising(MemoryDisk& disk) : LayeredCalls(disk), disk_(disk) {}
  int open(const char* path, int flags, unsigned mode) override {
    const int fd = LayeredCalls::open(path, flags, mode);
    if (fd >= 0 && path == kWholeRun + "/state") states_ = fd;
    return fd;
  }
  int rename(const char* from, const char* to, bool replace) override {
    const std::string name = to;
    if (const auto step = step_of_state_directory(name.substr(name.rfind('/') + 1))) step_ = *step;
    return LayeredCalls::rename(from, to, replace);
  }
  int sync(int fd) override {
    const int result = LayeredCalls::sync(fd);
    if (fd == states_ && step_ > 0) disk_.promise(static_cast<int>(step_.load()));
    return result;
  }

 private:
  MemoryDisk& disk_;
  std::atomic<int> states_{-1};
  std::atomic<int64_t> step_{0};
};

int64_t step_of_line(const std::string& line) {
  try {
    return parse_json(line, "line").find("step")->as_int();
  } catch (const Error&) {
    return -1;
  }
}

std::string whole_or_missing(const std::string& path, const std::string& end) {
  if (file_info(path).kind == FileKind::none) return "";
  return read_file(path).ends_with(end) ? "" : path + " is torn";
}

class CrashedRun {
 public:
  explicit CrashedRun(const std::string& devices = "host") : promising_(disk_), calls_(promising_) {
    config_.devices = devices;
    config_.steps = 4;
    config_.save_every.steps = 2;
    config_.keep = 1;
    const FileCallsOverride guard(calls_);
    REQUIRE(f_.run(config_) == ExitCode::done);
    root_ = root();
    result_ = read_file(kWholeRun + "/model/model.safetensors");
  }

  const std::string& final_root() const { return root_; }

  /// Judges crashes at any time of the run; of each `resumed`-th state the run goes on to its end.
  CrashReport judge(const CrashBounds& bounds, int64_t resumed) {
    int64_t looked = 0;
    return crash_states(disk_, bounds, [&](MemoryDisk& crashed, int promised) {
      const FileCallsOverride guard(crashed);
      try {
        std::string fault = fault_of(promised);
        if (fault.empty() && resumed > 0 && ++looked % resumed == 0) fault = fault_of_resume();
        return fault;
      } catch (const std::exception& error) {
        return std::string("refused: ") + error.what();
      }
    });
  }

 private:
  static std::string root() {
    const auto state = find_newest_state(kWholeRun, [](const RejectedState&) {});
    return state ? std::to_string(state->step) + " " + state->digest.root.hex() : "none";
  }

  std::string fault_of(int64_t promised) const {
    if (file_info(kWholeRun).kind == FileKind::none) return "";
    std::string fault;
    const auto state = find_newest_state(
        kWholeRun, [&](const RejectedState& bad) { fault = "rejected: " + bad.message(); });
    const int64_t step = state ? state->step : 0;
    if (!fault.empty()) return fault;
    if (step < promised) return "the state of step " + std::to_string(promised) + " is gone";
    if (step > 0) {
      // Its lines of metrics came before it.
      const std::string metrics = read_file(kWholeRun + "/metrics.jsonl");
      size_t at = 0;
      for (int64_t line = 1; line <= step; ++line) {
        const size_t end = metrics.find('\n', at);
        if (end == std::string::npos || step_of_line(metrics.substr(at, end - at)) != line) {
          return "no line of step " + std::to_string(line) + " beside a state of step " +
                 std::to_string(step);
        }
        at = end + 1;
      }
    }
    fault = whole_or_missing(kWholeRun + "/config.yaml", "\n") +
            whole_or_missing(kWholeRun + "/plan.json", "}\n");
    const std::string model = kWholeRun + "/model/model.safetensors";
    if (file_info(kWholeRun + "/model").kind != FileKind::none && read_file(model) != result_) {
      fault += "a torn result";
    }
    return fault;
  }

  std::string fault_of_resume() {
    if (f_.run(config_) != ExitCode::done) return "the resumed run did not end";
    if (root() != root_) return "another state after the resume";
    return read_file(kWholeRun + "/model/model.safetensors") == result_ ? "" : "another result";
  }

  AssumedRates quick_;
  TrainingFixture f_;
  TrainConfig config_ = [&] {
    TrainConfig config = f_.config("run");
    config.out = kWholeRun;
    return config;
  }();
  MemoryDisk disk_{kWholeRoot};
  Promising promising_;
  FaultyCalls calls_;
  std::string root_, result_;
};

TEST_CASE("crash states of a run: lines before states, and the same end after a resume") {
  CrashBounds bounds{16, 3, 3};
  bounds.alone = 4;
  bounds.stride = 9;
  const CrashReport report = CrashedRun().judge(bounds, 400);
  CHECK(report.fault == "");
  CHECK(report.states > 300);
}

TEST_CASE("crash states of a run on two devices: as on the host") {
  CrashBounds bounds{16, 2, 2};
  bounds.alone = 2;
  bounds.stride = 27;
  CrashedRun two("2xvirtual,host");
  CHECK(two.final_root() == CrashedRun().final_root());
  const CrashReport report = two.judge(bounds, 200);
  CHECK(report.fault == "");
  CHECK(report.states > 50);
}

TEST_CASE("crash states of a run, more of them", "[.long]") {
  CrashBounds bounds{200, 20, 5};
  bounds.alone = 8;
  const CrashReport report = CrashedRun().judge(bounds, 100);
  CHECK(report.fault == "");
  WARN(report.states << " crash states, " << report.distinct << " distinct");
}

TEST_CASE("crash states of a run show lines of metrics that were not synced before a state") {
  const PlantedFault guard("skip-sync-log");
  CrashBounds bounds{16, 3, 3};
  bounds.alone = 4;
  CHECK(CrashedRun().judge(bounds, 0).fault.starts_with("no line of step"));
}

}  // namespace
}  // namespace hearth::test
