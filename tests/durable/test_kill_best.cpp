// kill -9 of a run that keeps its best states, stops early and makes its result from the best: no
// kill loses a best state or its record.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>

#include "base/file_ops.h"
#include "base/json.h"
#include "base/sanitized.h"
#include "durable/tiny_run.h"
#include "state/saved_state.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

/// Rows that a run learns by heart and others to evaluate, so that the best state is not the last.
struct BestRun {
  TinyRun tiny;

  BestRun() {
    std::string rows;
    for (int i = 0; i < 6; ++i) {
      rows += R"({"text": "row number )" + std::to_string(i) + " and some" +
              std::string(2 * i, 'y') + "\"}\n";
    }
    write_file_atomically(tiny.d / "eval.jsonl", rows);
  }
  Start train(const std::string& out) const {
    return tiny.command({"train",
                         "--model",
                         tiny.d / "model",
                         "--data",
                         tiny.d / "rows.jsonl",
                         "--eval-data",
                         tiny.d / "eval.jsonl",
                         "--out",
                         tiny.d / out,
                         "--steps",
                         "30",
                         "--micro-batch",
                         "2",
                         "--grad-accum",
                         "2",
                         "--seq-len",
                         "48",
                         "--lr",
                         "4e-2",
                         "--warmup",
                         "1",
                         "--lr-schedule",
                         "constant",
                         "--eval-every",
                         "1",
                         "--keep",
                         "1",
                         "--keep-best",
                         "2",
                         "--early-stopping",
                         "3",
                         "--load-best",
                         "--save-every",
                         "0",
                         "--threads",
                         "1",
                         "--quiet"});
  }
  std::vector<std::pair<double, int64_t>> ranked(const std::string& out) const {
    std::vector<std::pair<double, int64_t>> all;
    for (const std::string& text : metrics_lines(tiny.d / out)) {
      const Json line = parse_json(text, out);
      if (const Json* loss = line.find("eval_loss")) {
        all.emplace_back(loss->as_double(), line.find("step")->as_int());
      }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  /// The states of a directory, and the files of its result.
  std::pair<std::vector<int64_t>, std::map<std::string, std::string>> left(
      const std::string& out) const {
    return {steps_of_states(tiny.d / out), content_below(tiny.d / (out + "/model"))};
  }
  /// What is wrong with the states after a kill: one of the best that the newest state records is
  /// not there, or not whole, or there are too many.
  std::string wrong(const std::string& out) const {
    const std::vector<int64_t> steps = steps_of_states(tiny.d / out);
    if (steps.empty()) return "";
    if (steps.size() > 4) return std::to_string(steps.size()) + " states";
    const std::string folder = tiny.d / (out + "/state/");
    try {
      for (const int64_t step : steps) verify_state(folder + state_directory_name(step));
      const SavedState newest = open_state(folder + state_directory_name(steps.back()));
      const Json* best = newest.extra.find("best");
      if (best == nullptr) return "no record of the best";
      for (const Json& state : best->find("states")->as_array()) {
        const int64_t step = state.find("step")->as_int();
        if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
          return "the best state of step " + std::to_string(step) + " is gone";
        }
      }
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

/// Kills a run at every `stride`-th file operation, some twice.
void sweep_best(int64_t stride) {
  const BestRun best;
  REQUIRE(best.tiny.finish(best.train("whole")) == "");
  const auto expected = best.left("whole");
  const auto ranked = best.ranked("whole");
  REQUIRE(ranked.size() > 5);
  // It ended early, and its best two are neither the last nor the first.
  const int64_t last = expected.first.back();
  REQUIRE(last == ranked[0].second + 3);
  REQUIRE(ranked[0].second > 2);
  std::vector<int64_t> kept{ranked[0].second, ranked[1].second, last};
  std::sort(kept.begin(), kept.end());
  REQUIRE(expected.first == kept);

  Start counted = best.train("counted");
  counted.environment["HEARTH_CALL_LOG"] = best.tiny.d / "calls";
  REQUIRE(best.tiny.run(counted).code == 0);
  const std::string log = read_file(best.tiny.d / "calls");
  const int64_t calls = std::count(log.begin(), log.end(), '\n');
  for (int64_t n = 1; n <= calls; n += stride + (n % 2)) {
    INFO("call " << n << " of " << calls);
    for (const int64_t again : {n, n / 2 + 1}) {
      Start doomed = best.train("run");
      doomed.environment["HEARTH_KILL_AT"] = std::to_string(again);
      const Ended ended = best.tiny.run(doomed);
      INFO(ended.err);
      REQUIRE((ended.code == 128 + SIGKILL || ended.code == 0));
      REQUIRE(best.wrong("run") == "");
    }
    REQUIRE(best.tiny.finish(best.train("run")) == "");
    REQUIRE(best.left("run") == expected);
    std::filesystem::remove_all(best.tiny.d / "run");
  }
}

TEST_CASE("kill -9: no kill loses a best state or its record") {
  sweep_best(kSanitized ? 400 : 60);
}
TEST_CASE("kill -9: at every file operation of a run that keeps its best", "[.long]") {
  sweep_best(1);
}

TEST_CASE("signals: a run that keeps its best states, stopped again and again") {
  const BestRun best;
  REQUIRE(best.tiny.finish(best.train("whole")) == "");
  const auto expected = best.left("whole");
  // A signal in the middle: the evaluation that it cuts off is made again.
  for (int i = 0; i < 4; ++i) {
    Start start = best.train("run");
    Process process(test_binary(), start);
    process.wait_until([&] {
      return metrics_lines(best.tiny.d / "run").size() >= static_cast<size_t>(2 * i + 1);
    });
    process.signal(SIGTERM);
    const Ended ended = process.wait();
    INFO(ended.code << ": " << ended.err);
    // The signal may come before the program listens: a run before may have written the lines already.
    REQUIRE((ended.code == 75 || ended.code == 0 || ended.code == 128 + SIGTERM));
    REQUIRE(best.wrong("run") == "");
  }
  REQUIRE(best.tiny.finish(best.train("run")) == "");
  CHECK(best.left("run") == expected);
}

}  // namespace
}  // namespace hearth::test
