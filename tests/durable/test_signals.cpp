// Signals that ask to stop at any instant: a state of the last whole step, code 75, and the bits
// of an uninterrupted run from the same command.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>

#include "base/file_ops.h"
#include "base/json.h"
#include "base/sanitized.h"
#include "durable/tiny_run.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

constexpr std::array kStops = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP};

int64_t last_metrics_step(const std::string& run) {
  const std::vector<std::string> lines = metrics_lines(run);
  if (lines.empty()) return 0;
  return parse_json(lines.back(), run).find("step")->as_int();
}

/// Of a run that a signal stopped: its last whole step is saved and nothing unfinished lies about.
std::string wrong_after_stop(const TinyRun& tiny, const std::string& out, int keep) {
  if (const std::string wrong = tiny.wrong_between(out, keep); !wrong.empty()) return wrong;
  const std::string run = tiny.d / out;
  const std::vector<int64_t> states = steps_of_states(run);
  const int64_t last = last_metrics_step(run), saved = states.empty() ? 0 : states.back();
  if (saved != last) {
    return "step " + std::to_string(last) + " was done, " + std::to_string(saved) + " saved";
  }
  for (const auto& [name, content] : content_below(run)) {
    if (name.find(".tmp-") != std::string::npos || name.find(".trash-") != std::string::npos) {
      return name + " was left";
    }
  }
  return "";
}

/// Whether a program may end so that got a stop signal: stopped with 75, or done just before, or,
/// before it could ask for signals, ended by it with nothing written.
bool may_end(int code, int signal, bool nothing_written) {
  return code == 75 || code == 0 || (code == 128 + signal && nothing_written);
}

void stop_at_instants(int instants, const std::vector<std::string>& devices = {}) {
  const TinyRun tiny;
  Seeded random(40);
  INFO("HEARTH_SEED=" << random.seed);
  const Ended whole = tiny.run(tiny.train("whole", devices));
  REQUIRE(whole.code == 0);
  const Outcome expected = tiny.outcome("whole");

  int sent = 0, stopped = 0;
  for (int r = 0; sent < instants; ++r) {
    const std::string out = "run" + std::to_string(r);
    std::vector<std::string> options{"--save-every", random.chance(0.5) ? "0" : "2", "--threads",
                                     random.chance(0.3) ? "2" : "1"};
    options.insert(options.end(), devices.begin(), devices.end());
    const Start start = tiny.train(out, options);
    std::string story = out + ", save-every " + options[1];
    bool ended = false;
    for (int k = 0; !ended && k < 6 && sent < instants; ++k, ++sent) {
      const double after = random.real(0, whole.seconds);
      const int signal = kStops[static_cast<size_t>(random.whole(0, 2))];
      story += ", signal " + std::to_string(signal) + " after " + std::to_string(after) + " s";
      const auto before = content_below(tiny.d / out);
      Process process(test_binary(), start);
      const double until = now() + after;
      process.wait_until([&] { return now() > until; });
      process.signal(signal);
      if (random.chance(0.3)) process.signal(signal);  // as timeout(1) does: one request
      const Ended end = process.wait(30);
      INFO(story << "\ncode " << end.code << " " << end.err);
      REQUIRE(may_end(end.code, signal, content_below(tiny.d / out) == before));
      ended = end.code == 0;
      if (end.code == 75) {
        ++stopped;
        REQUIRE(wrong_after_stop(tiny, out, 2) == "");
      }
    }
    INFO(story);
    REQUIRE(tiny.finish(start) == "");
    REQUIRE(tiny.wrong_at_end(out, 2, expected, options[1] != "0") == "");
  }
  CHECK(stopped > instants / 10);  // else this test is none of a stop
}

TEST_CASE("signals: forty instants") { stop_at_instants(kSanitized ? 12 : 40); }

TEST_CASE("signals: at instants of runs on two devices and the host") {
  stop_at_instants(kSanitized ? 4 : 16, {"--devices", "2xvirtual,host"});
}
TEST_CASE("signals: two hundred instants", "[.long]") { stop_at_instants(200); }
TEST_CASE("signals: a hundred instants on two devices", "[.long]") {
  stop_at_instants(100, {"--devices", "2xvirtual"});
}

/// A signal before every `stride`-th file operation: while model and data are read, the data cache,
/// a state or the result is written, older states are removed.
void stop_at_calls(int64_t stride) {
  const TinyRun tiny;
  const auto options = [&](const std::string& out) {
    Start start = tiny.train(out, {"--eval-at-start"});
    start.environment["XDG_CACHE_HOME"] = tiny.d / (out + "-cache");
    return start;
  };
  Start counted = options("whole");
  counted.environment["HEARTH_CALL_LOG"] = tiny.d / "calls";
  REQUIRE(tiny.run(counted).code == 0);
  const Outcome expected = tiny.outcome("whole");
  const std::string log = read_file(tiny.d / "calls");
  const int64_t calls = std::count(log.begin(), log.end(), '\n');
  for (int64_t n = 1; n <= calls; n += stride + n % 2) {
    const int signal = kStops[static_cast<size_t>(n % 3)];
    Start disturbed = options("run");
    disturbed.environment["HEARTH_KILL_AT"] = std::to_string(n);
    disturbed.environment["HEARTH_KILL_BY"] = std::to_string(signal);
    const Ended end = tiny.run(disturbed);
    INFO("signal " << signal << " at call " << n << " of " << calls << "\n" << end.err);
    REQUIRE(may_end(end.code, signal, !std::filesystem::exists(tiny.d / "run")));
    if (end.code == 75) REQUIRE(wrong_after_stop(tiny, "run", 2) == "");
    REQUIRE(tiny.finish(options("run")) == "");
    REQUIRE(tiny.wrong_at_end("run", 2, expected) == "");
    std::filesystem::remove_all(tiny.d / "run");
    std::filesystem::remove_all(tiny.d / "run-cache");
  }
}

TEST_CASE("signals: at file operations all over a run") { stop_at_calls(kSanitized ? 400 : 60); }

TEST_CASE("signals: at every file operation of a run", "[.long]") { stop_at_calls(1); }

/// A second signal, later than the first is taken for, ends a slow save at once.
void send_twice(int times) {
  const TinyRun tiny;
  Seeded random(75);
  INFO("HEARTH_SEED=" << random.seed);
  REQUIRE(tiny.run(tiny.train("whole")).code == 0);
  const Outcome expected = tiny.outcome("whole");
  int cut_short = 0;
  for (int i = 0; i < times; ++i) {
    const std::string out = "run" + std::to_string(i);
    const Start start = tiny.train(out);
    Start slow = start;
    slow.environment["HEARTH_SLOW_CALLS"] = "3000";
    const auto lines = static_cast<size_t>(random.whole(1, 3));
    const double gap = random.real(0.11, 0.4);
    INFO("second signal " << gap << " s after the first, in step " << lines);
    Process process(test_binary(), slow);
    REQUIRE(process.wait_until([&] { return metrics_lines(tiny.d / out).size() >= lines; }));
    process.signal(SIGTERM);
    const double first = now();
    process.wait_until([&] { return now() > first + gap; });
    process.signal(SIGINT);
    const double second = now();
    const Ended end = process.wait(30);
    INFO(end.err);
    REQUIRE(end.code == 75);
    CHECK(now() - second < 5);
    cut_short += wrong_after_stop(tiny, out, 2) != "";
    REQUIRE(tiny.wrong_between(out, 2) == "");
    REQUIRE(tiny.finish(start) == "");
    REQUIRE(tiny.wrong_at_end(out, 2, expected) == "");
  }
  if (times > 20) CHECK(cut_short > 0);  // else this test is none of a second signal
}

TEST_CASE("signals: a second one ends at once") { send_twice(kSanitized ? 2 : 4); }

TEST_CASE("signals: a second one, at many distances", "[.long]") { send_twice(50); }

}  // namespace
}  // namespace hearth::test
