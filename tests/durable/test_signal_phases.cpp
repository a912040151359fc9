// A stop signal in each phase of a run that takes long there: the answer comes in seconds, not when
// the phase has ended.
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/file_ops.h"
#include "base/sanitized.h"
#include "durable/tiny_run.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

constexpr double kSoon = kSanitized ? 20 : 4;  // seconds, on a machine that has other work, too

struct Phases {
  TinyRun tiny;
  Outcome expected;

  Phases() {
    REQUIRE(tiny.run(tiny.train("whole")).code == 0);
    expected = tiny.outcome("whole");
  }
  void write_rows(const std::string& name, int rows) const {
    std::ofstream out(tiny.d / name);
    for (int i = 0; i < rows; ++i) {
      out << R"({"text": "this is row )" << i << " of very many rows, and it has some words\"}\n";
    }
  }
  bool journal_has(const std::string& out, const std::string& part) const {
    const std::string path = tiny.d / (out + "/journal.jsonl");
    return fs::exists(path) && read_file(path).find(part) != std::string::npos;
  }
  /// Starts, waits for the condition and a moment more, and asks it to stop. It stops soon.
  void stop(const Start& start, const std::function<bool()>& condition, double moment) const {
    Process process(test_binary(), start);
    REQUIRE(process.wait_until(condition));
    const double until = now() + moment;
    REQUIRE(process.wait_until([&] { return now() > until; }));
    REQUIRE(process.running());
    process.signal(SIGTERM);
    const double asked = now();
    const Ended end = process.wait(60);
    INFO(end.err);
    CHECK(end.code == 75);
    CHECK(now() - asked < kSoon);
  }
};

TEST_CASE("signal phases: while the model is opened and read") {
  const Phases p;
  Start slow = p.tiny.train("run");
  slow.environment["HEARTH_SLOW_CALLS"] = "30000";
  for (const double moment : {0.2, 1.0}) {
    INFO(moment << " s after the lock");
    p.stop(
        slow, [&] { return fs::exists(p.tiny.d / "run/.lock"); }, moment);
    CHECK(steps_of_states(p.tiny.d / "run").empty());
  }
  CHECK(p.tiny.finish(p.tiny.train("run")) == "");
  CHECK(p.tiny.wrong_at_end("run", 2, p.expected) == "");
}

TEST_CASE("signal phases: while rows are tokenised and evaluated") {
  const Phases p;
  p.write_rows("many.jsonl", kSanitized ? 8'000 : 50'000);
  Start start = p.tiny.train("run", {"--eval-at-start"});
  for (std::string& word : start.words) {
    if (word == p.tiny.d / "eval.jsonl") word = p.tiny.d / "many.jsonl";
  }
  p.stop(
      start, [&] { return fs::exists(p.tiny.d / "run/.lock"); }, 0.2);
  // Nothing of it lies in the cache of rows but what is whole.
  for (const auto& [name, content] : content_below(p.tiny.d / "cache")) {
    CHECK(name.find("tmp") == std::string::npos);
  }
  p.stop(
      start, [&] { return p.journal_has("run", "\"plan\""); }, 0.3);
  CHECK_FALSE(p.journal_has("run", "\"eval\""));
}

TEST_CASE("signal phases: in a step of many micro-batches, and while a state is written") {
  const Phases p;
  Start start = p.tiny.train("long");
  for (size_t i = 0; i + 1 < start.words.size(); ++i) {
    if (start.words[i] == "--grad-accum") start.words[i + 1] = kSanitized ? "800" : "5000";
  }
  p.stop(
      start, [&] { return p.journal_has("long", "\"plan\""); }, 0.3);
  CHECK(metrics_lines(p.tiny.d / "long").empty());

  Start slow = p.tiny.train("run");
  slow.environment["HEARTH_SLOW_CALLS"] = "4000";  // a save takes a third of a second
  p.stop(
      slow, [&] { return fs::exists(p.tiny.d / "run/state/.tmp-step-00000002"); }, 0);
  CHECK(steps_of_states(p.tiny.d / "run").back() >= 2);
  CHECK(p.tiny.wrong_between("run", 2) == "");
  CHECK(p.tiny.finish(p.tiny.train("run")) == "");
  CHECK(p.tiny.wrong_at_end("run", 2, p.expected) == "");
}

TEST_CASE("signal phases: while the result is written") {
  const Phases p;
  Start slow = p.tiny.train("run", {"--save-every", "0"});
  slow.environment["HEARTH_SLOW_CALLS"] = "5000";
  Process process(test_binary(), slow);
  REQUIRE(process.wait_until([&] { return fs::exists(p.tiny.d / "run/.tmp-model"); }));
  process.signal(SIGTERM);
  const Ended end = process.wait(60);
  INFO(end.err);
  CHECK((end.code == 75 || end.code == 0));
  CHECK(fs::exists(p.tiny.d / "run/model") == (end.code == 0));
  CHECK_FALSE(fs::exists(p.tiny.d / "run/.tmp-model"));
  CHECK(p.tiny.finish(p.tiny.train("run", {"--save-every", "0"})) == "");
  CHECK(p.tiny.wrong_at_end("run", 2, p.expected, false) == "");
}

}  // namespace
}  // namespace hearth::test
