// kill -9, at random times and at random file operations: the same command, given again until it
// ends, gives the bits of an uninterrupted run.
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>

#include "base/file_ops.h"
#include "base/sanitized.h"
#include "durable/tiny_run.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

constexpr int kMostKillsOfARun = 12;
constexpr int kEveryLora = 4;  // one run of so many trains adapters

const std::vector<std::string> kLora{"--method",       "lora", "--lora-r",    "4",
                                     "--lora-dropout", "0.1",  "--trainable", "*norm.weight"};
const std::vector<std::string> kOnTwo{"--devices", "2xvirtual,host"};
// Weights travel, and the host's updates run in the next step, and before each save.
const std::vector<std::string> kMobius{"--devices", "virtual", "--policy", "mobius"};
const std::vector<std::string> kOnDemand{"--devices", "2xvirtual", "--policy", "gpipe-offload"};
const std::vector<std::string> kDivided{"--devices", "virtual,host", "--policy", "aptmoe"};
// Ranks of one process, which save side by side.
const std::vector<std::string> kShards{"--logical-shards", "2"};
const std::vector<std::string> kDpRanks{"--parallel",       "dp", "--thread-ranks", "2",
                                        "--logical-shards", "2"};
const std::vector<std::string> kEpRanks{"--parallel",       "ep", "--thread-ranks", "2",
                                        "--logical-shards", "2"};
// Ranks that compute with what they decode of each other's weights.
const std::vector<std::string> kWiredRanks{
    "--parallel", "hybrid-ep", "--thread-ranks", "2",          "--logical-shards", "2",
    "--domains",  "2",         "--wire",         "residual:8", "--wire-threshold", "1"};

std::vector<std::string> joined(std::vector<std::string> some,
                                const std::vector<std::string>& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

int64_t calls_of(const TinyRun& tiny, Start start) {
  start.environment["HEARTH_CALL_LOG"] = tiny.d / "calls";
  REQUIRE(tiny.run(start).code == 0);
  const std::string log = read_file(tiny.d / "calls");
  return std::count(log.begin(), log.end(), '\n');
}

/// What uninterrupted runs leave, and how many file operations and seconds they take.
struct Whole {
  std::vector<std::string> options;
  Outcome expected;
  int64_t calls = 0;
  double seconds = 0;

  Whole(const TinyRun& tiny, const std::string& out, std::vector<std::string> more)
      : options(std::move(more)) {
    REQUIRE(tiny.run(tiny.train(out, options)).code == 0);
    expected = tiny.outcome(out);
    calls = calls_of(tiny, tiny.train(out + "-counted", options));
    seconds = tiny.run(tiny.train(out + "-timed", options)).seconds;
  }
};

/// Kills runs of every --keep and --save-every until `kills` of them died.
void kill_and_compare(int kills, const std::vector<std::string>& devices = {}) {
  const TinyRun tiny;
  Seeded random(20261122);
  INFO("HEARTH_SEED=" << random.seed);
  const Whole full(tiny, "full", devices), lora(tiny, "lora", joined(kLora, devices));
  if (!devices.empty()) {  // which change no bit
    const bool on_ranks = devices.back() == kShards.back();
    const auto host = tiny.train("host", on_ranks ? kShards : std::vector<std::string>{});
    REQUIRE(tiny.run(host).code == 0);
    REQUIRE(tiny.outcome("host").root == full.expected.root);
  }
  const auto base = content_below(tiny.d / "model");

  int killed = 0;
  for (int r = 0; killed < kills; ++r) {
    const std::string out = "run" + std::to_string(r);
    const int keep = static_cast<int>(random.whole(1, 3));
    const Whole& whole = r % kEveryLora == 0 ? lora : full;
    std::vector<std::string> options{"--keep",       std::to_string(keep),
                                     "--save-every", random.chance(0.7) ? "1" : "2",
                                     "--threads",    random.chance(0.3) ? "2" : "1"};
    options.insert(options.end(), whole.options.begin(), whole.options.end());
    Start start = tiny.train(out, options);
    if (random.chance(0.5)) start.environment["XDG_CACHE_HOME"] = tiny.d / (out + "-cache");
    std::string story = "run " + std::to_string(r) + ", keep " + std::to_string(keep) +
                        (&whole == &lora ? ", adapters" : "");
    bool ended = false;
    for (int k = 0; !ended && k < kMostKillsOfARun && killed < kills; ++k) {
      Start doomed = start;
      double after = 0;
      if (random.chance(0.5)) {
        const int64_t call = random.whole(1, whole.calls);
        doomed.environment["HEARTH_KILL_AT"] = std::to_string(call);
        story += ", at call " + std::to_string(call);
      } else {
        after = random.real(0, whole.seconds);
        story += ", after " + std::to_string(after) + " s";
      }
      Process process(test_binary(), doomed);
      if (after > 0) {
        const double until = now() + after;
        process.wait_until([&] { return now() > until; });
        process.signal(SIGKILL);
      }
      const Ended end = process.wait();
      INFO(story << "\n" << end.err);
      REQUIRE((end.code == 0 || end.code == 128 + SIGKILL));
      ended = end.code == 0;
      if (!ended) ++killed;
      REQUIRE(tiny.wrong_between(out, keep) == "");
    }
    INFO(story);
    REQUIRE(tiny.finish(start) == "");
    REQUIRE(tiny.wrong_at_end(out, keep, whole.expected) == "");
    std::filesystem::remove_all(tiny.d / out);
    std::filesystem::remove_all(tiny.d / (out + "-cache"));
  }
  CHECK(content_below(tiny.d / "model") == base);
}

TEST_CASE("kill -9: a hundred kills, the same bits") { kill_and_compare(kSanitized ? 20 : 100); }

TEST_CASE("kill -9: of runs on two devices and the host") {
  kill_and_compare(kSanitized ? 6 : 24, kOnTwo);
}
TEST_CASE("kill -9: of runs whose weights travel to a device") {
  kill_and_compare(kSanitized ? 3 : 8, kMobius);
}
TEST_CASE("kill -9: of runs whose weights are loaded on demand, or whose experts are divided") {
  for (const auto& options : {kOnDemand, kDivided}) kill_and_compare(kSanitized ? 2 : 4, options);
}
TEST_CASE("kill -9: of runs of several ranks") {
  for (const auto& options : {kDpRanks, kEpRanks}) kill_and_compare(kSanitized ? 4 : 12, options);
}
TEST_CASE("kill -9: a thousand kills, the same bits", "[.long]") { kill_and_compare(1000); }
TEST_CASE("kill -9: three hundred kills on two devices", "[.long]") {
  kill_and_compare(300, kOnTwo);
}

/// Kills a run at every `stride`-th file operation of a fresh start, the writing of
/// the data cache, of states, their retention and the result among them.
void sweep(int64_t stride, const std::vector<std::string>& devices = {}) {
  const TinyRun tiny;
  const std::vector<std::string> options = joined({"--keep", "1"}, devices);
  REQUIRE(tiny.run(tiny.train("whole", options)).code == 0);
  const Outcome expected = tiny.outcome("whole");
  Start counted = tiny.train("counted", options);
  counted.environment["XDG_CACHE_HOME"] = tiny.d / "counted-cache";
  const int64_t calls = calls_of(tiny, counted);
  // Long and short strides in turn, so that no kind of call is always passed over.
  for (int64_t n = 1; n <= calls; n += stride + (n % 2)) {
    Start start = tiny.train("run", options);
    start.environment["XDG_CACHE_HOME"] = tiny.d / "run-cache";
    Start doomed = start;
    doomed.environment["HEARTH_KILL_AT"] = std::to_string(n);
    INFO("call " << n << " of " << calls);
    REQUIRE(tiny.run(doomed).code == 128 + SIGKILL);
    REQUIRE(tiny.wrong_between("run", 1) == "");
    REQUIRE(tiny.finish(start) == "");
    REQUIRE(tiny.wrong_at_end("run", 1, expected) == "");
    std::filesystem::remove_all(tiny.d / "run");
    std::filesystem::remove_all(tiny.d / "run-cache");
  }
}

TEST_CASE("kill -9: at file operations all over a run") { sweep(kSanitized ? 300 : 40); }

TEST_CASE("kill -9: at file operations of a run on two devices") {
  sweep(kSanitized ? 600 : 120, kOnTwo);
}
TEST_CASE("kill -9: at file operations of a run of several ranks") {
  for (const auto& options : {kDpRanks, kEpRanks, kWiredRanks}) {
    sweep(kSanitized ? 600 : 60, options);
  }
}
TEST_CASE("kill -9: at every file operation of a run", "[.long]") { sweep(1); }
TEST_CASE("kill -9: at every file operation of a run of several ranks", "[.long]") {
  sweep(1, kDpRanks);
}

}  // namespace
}  // namespace hearth::test
