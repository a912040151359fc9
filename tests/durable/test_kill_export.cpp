// kill -9 during `export` and `init`: what they make appears whole or not at all, and the same
// command makes it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>

#include "base/file_ops.h"
#include "base/sanitized.h"
#include "durable/tiny_run.h"

namespace hearth::test {
namespace {

void kill_at_calls(const TinyRun& tiny, const std::vector<std::string>& words, int64_t stride) {
  // Into a folder of its own, so that whatever is left beside the result shows.
  const auto into = [&](const std::string& folder) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--out", tiny.d / (folder + "/result")});
    return tiny.command(all);
  };
  Start counted = into("whole");
  counted.environment["HEARTH_CALL_LOG"] = tiny.d / "calls";
  REQUIRE(tiny.run(counted).code == 0);
  const auto expected = content_below(tiny.d / "whole");
  const std::string log = read_file(tiny.d / "calls");
  const int64_t calls = std::count(log.begin(), log.end(), '\n');
  const auto inputs = content_below(tiny.d / "run");

  for (int64_t n = 1; n <= calls; n += stride) {
    INFO(words[0] << ", call " << n << " of " << calls);
    Start doomed = into("killed");
    doomed.environment["HEARTH_KILL_AT"] = std::to_string(n);
    REQUIRE(tiny.run(doomed).code == 128 + SIGKILL);
    const std::string result = tiny.d / "killed/result";
    const bool there = std::filesystem::exists(result);
    const std::string whole = tiny.d / "whole/result";
    if (there && std::filesystem::is_directory(result)) {
      CHECK(content_below(result) == content_below(whole));
    } else if (there) {
      const bool same = read_file(result) == read_file(whole);
      CHECK(same);
    }
    const Ended again = tiny.run(into("killed"));
    if (there) {
      CHECK(wrong_refusal(again, 2, {"exists already", result}) == "");
    } else {
      INFO(again.err);
      CHECK(again.code == 0);
      CHECK(content_below(tiny.d / "killed") == expected);  // and nothing beside it
    }
    CHECK(content_below(tiny.d / "run") == inputs);
    std::filesystem::remove_all(tiny.d / "killed");
  }
  std::filesystem::remove_all(tiny.d / "whole");
  remove_file(tiny.d / "calls");
}

void kill_export(int64_t stride) {
  const TinyRun tiny;
  REQUIRE(tiny.run(tiny.train("run", {"--save-every", "0"})).code == 0);
  kill_at_calls(tiny, {"export", "--from-state", tiny.d / "run"}, stride);
  kill_at_calls(tiny, {"export", "--gguf", "q8_0", "--from-state", tiny.d / "run"}, stride);
  kill_at_calls(tiny, {"init", "--config", tiny.d / "config.json"}, stride);
}

TEST_CASE("signals: export and init that are stopped leave nothing, or the whole result") {
  const TinyRun tiny;
  REQUIRE(tiny.run(tiny.train("run", {"--save-every", "0"})).code == 0);
  int stopped = 0;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"export", "--from-state", tiny.d / "run"},
                                             {"export", "--gguf", "f16", "--model", tiny.d / "run"},
                                             {"init", "--config", tiny.d / "config.json"}}) {
    for (int64_t n = 1; n < 1000; n += kSanitized ? 60 : 15) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--out", tiny.d / "stopped/result"});
      Start start = tiny.command(all);
      start.environment["HEARTH_KILL_AT"] = std::to_string(n);
      start.environment["HEARTH_KILL_BY"] = std::to_string(SIGTERM);
      const Ended end = tiny.run(start);
      INFO(words[0] << ", call " << n << ": " << end.err);
      const bool there = std::filesystem::exists(tiny.d / "stopped/result");
      CHECK(end.code == (there ? 0 : 75));
      if (!there) CHECK(content_below(tiny.d / "stopped").empty());
      std::filesystem::remove_all(tiny.d / "stopped");
      stopped += there ? 0 : 1;
      if (end.code == 0 && n > 200) break;  // the last calls, or after them
    }
  }
  CHECK(stopped > 2);
}

TEST_CASE("kill -9: export and init at some of their file operations") {
  kill_export(kSanitized ? 60 : 9);
}

TEST_CASE("kill -9: export and init at each of their file operations", "[.long]") {
  kill_export(1);
}

}  // namespace
}  // namespace hearth::test
