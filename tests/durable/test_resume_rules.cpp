// The rules of a resume with the real program: which state counts, what may differ, what is refused
// and leaves everything as it was.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/file_ops.h"
#include "base/json.h"
#include "durable/tiny_run.h"
#include "state/state_search.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

void overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// A run that ended, and one that was killed with states of at least two steps.
struct KilledRun {
  TinyRun tiny;
  Outcome expected;

  KilledRun() {
    REQUIRE(tiny.run(tiny.train("whole")).code == 0);
    expected = tiny.outcome("whole");
    Start doomed = tiny.train("kept");
    doomed.environment["HEARTH_CALL_LOG"] = tiny.d / "calls";
    REQUIRE(tiny.run(doomed).code == 0);
    const std::string log = read_file(tiny.d / "calls");
    fs::remove_all(tiny.d / "kept");
    doomed.environment["HEARTH_KILL_AT"] =
        std::to_string(std::count(log.begin(), log.end(), '\n') / 2);
    REQUIRE(tiny.run(doomed).code == 128 + SIGKILL);
    REQUIRE(steps_of_states(tiny.d / "kept").size() >= 2);
    put_back();
  }
  void put_back() const {
    fs::remove_all(tiny.d / "run");
    fs::copy(tiny.d / "kept", tiny.d / "run", fs::copy_options::recursive);
  }
  std::string state(size_t from_newest = 0) const {
    const std::vector<int64_t> steps = steps_of_states(tiny.d / "kept");
    return tiny.d / ("run/state/" + state_directory_name(steps.at(steps.size() - 1 - from_newest)));
  }
  /// "" if the start ends with the bits of the run that was not killed.
  std::string wrong(const Start& start, const std::string& out = "run") const {
    const Ended end = tiny.run(start);
    if (end.code != 0) return "code " + std::to_string(end.code) + ": " + end.err;
    return tiny.wrong_at_end(out, 2, expected);
  }
  /// "" if the start is refused so and nothing in the run directory changes.
  std::string wrong_refused(const Start& start, int code,
                            const std::vector<std::string>& parts) const {
    const auto before = content_below(tiny.d / "run");
    const std::string wrong = wrong_refusal(tiny.run(start), code, parts);
    if (content_below(tiny.d / "run") != before) return "the run directory changed; " + wrong;
    return wrong;
  }
};

TEST_CASE("resume rules: any number of threads, a moved directory, other time stamps") {
  const KilledRun k;
  for (const char* threads : {"1", "2", "3", "5"}) {
    INFO(threads << " threads");
    k.put_back();
    CHECK(k.wrong(k.tiny.train("run", {"--threads", threads})) == "");
  }
  for (const auto& [name, content] : content_below(k.tiny.d / "model")) {
    fs::last_write_time(k.tiny.d / ("model/" + name), fs::file_time_type::clock::now());
  }
  fs::last_write_time(k.tiny.d / "rows.jsonl", fs::file_time_type::clock::now());
  k.put_back();
  fs::create_directory(k.tiny.d / "other");
  fs::rename(k.tiny.d / "run", k.tiny.d / "other/place");
  CHECK(k.wrong(k.tiny.train("other/place"), "other/place") == "");
}

TEST_CASE("resume rules: empty and torn files beside the states do not hinder") {
  const KilledRun k;
  for (const char* name : {"config.yaml", "plan.json", "metrics.jsonl", "journal.jsonl"}) {
    for (const char* kind : {"empty", "torn", "gone"}) {
      INFO(name << " " << kind);
      k.put_back();
      const std::string path = k.tiny.d / (std::string("run/") + name);
      const std::string whole = read_file(path);
      if (kind == std::string("gone")) {
        fs::remove(path);
      } else {
        overwrite(path, kind == std::string("torn") ? whole.substr(0, whole.size() / 2) : "");
      }
      const Ended end = k.tiny.run(k.tiny.train("run"));
      INFO(end.err);
      CHECK(end.code == 0);
      const Outcome outcome = k.tiny.outcome("run");
      CHECK(outcome.root == k.expected.root);
      CHECK(outcome.model == k.expected.model);
      // Of a log, the torn line is cut and nothing else.
      if (kind != std::string("torn") || std::string(name).find("jsonl") == std::string::npos) {
        continue;
      }
      const size_t lines = whole.rfind('\n', whole.size() / 2 - 1) + 1;
      CHECK(read_file(path).substr(0, lines) == whole.substr(0, lines));
      CHECK(read_file(path)[lines] == '{');
    }
  }
}

TEST_CASE("resume rules: the newest whole state counts, with none the run is left alone") {
  const KilledRun k;
  const auto spoil = [&](const std::string& state) {
    std::string content = read_file(state + "/moment2.safetensors");
    content[content.size() - 5] ^= 1;
    overwrite(state + "/moment2.safetensors", content);
  };
  spoil(k.state());
  const Ended end = k.tiny.run(k.tiny.train("run"));
  CHECK(end.code == 0);
  CHECK(end.err.find(k.state() + "/moment2.safetensors: is damaged") != std::string::npos);
  INFO(end.err);
  CHECK(std::count(end.err.begin(), end.err.end(), '\n') == 1);
  const std::string journal = read_file(k.tiny.d / "run/journal.jsonl");
  CHECK(journal.find("\"state_rejected\"") != std::string::npos);
  CHECK(journal.find("\"resume\"") != std::string::npos);
  CHECK(k.tiny.wrong_at_end("run", 2, k.expected) == "");

  // None whole: damaged, empty, files in their place.
  k.put_back();
  const auto refused = [&](const std::string& how) {
    INFO(how);
    const auto before = content_below(k.tiny.d / "run");
    const Ended none = k.tiny.run(k.tiny.train("run"));
    INFO(none.err);
    CHECK(none.code == 4);
    CHECK(none.err.find("none of it is whole") != std::string::npos);
    CHECK(content_below(k.tiny.d / "run") == before);
  };
  spoil(k.state(0));
  spoil(k.state(1));
  refused("damaged");
  for (const size_t i : {0, 1}) fs::remove(k.state(i) + "/manifest.json");
  refused("without manifests");
  for (const size_t i : {0, 1}) {
    fs::remove_all(k.state(i));
    fs::create_directory(k.state(i));
  }
  refused("empty");
  for (const size_t i : {0, 1}) {
    fs::remove_all(k.state(i));
    overwrite(k.state(i), "x");
  }
  refused("files");
  for (const size_t i : {0, 1}) fs::remove(k.state(i));
  CHECK(k.tiny.finish(k.tiny.train("run")) == "");  // as if there had never been one
  CHECK(k.tiny.outcome("run").root == k.expected.root);
}

TEST_CASE("resume rules: changed content of model, tokenizer or data is refused by its file") {
  const KilledRun k;
  for (const char* name : {"model/config.json", "model/model.safetensors", "model/tokenizer.json",
                           "model/tokenizer_config.json", "rows.jsonl", "eval.jsonl"}) {
    INFO(name);
    const std::string path = k.tiny.d / name, whole = read_file(path);
    std::string changed = whole;
    if (std::string(name) == "model/model.safetensors") {
      changed[changed.size() - 3] ^= 1;
    } else if (changed.front() == '{' && std::string(name).find("jsonl") == std::string::npos) {
      changed.insert(1, " ");
    } else {
      changed += "{\"text\": \"more\"}\n";
    }
    overwrite(path, changed);
    CHECK(k.wrong_refused(k.tiny.train("run"), 3, {fs::path(name).filename()}) == "");
    overwrite(path, whole);
  }
  CHECK(k.wrong(k.tiny.train("run")) == "");
}

TEST_CASE("resume rules: never, from a directory, and after the end") {
  const KilledRun k;
  CHECK(k.wrong_refused(k.tiny.train("run", {"--resume", "never"}), 2, {"--resume never"}) == "");

  // A state, a run directory, one that was moved: the new --out has the lines of the next steps.
  const int64_t newest = steps_of_states(k.tiny.d / "kept").back();
  fs::create_directory(k.tiny.d / "far");
  fs::copy(k.tiny.d / "kept", k.tiny.d / "far/moved", fs::copy_options::recursive);
  for (const std::string& from : {k.state(), k.state() + "/", k.state(1), k.tiny.d / "run",
                                  k.tiny.d / "run/", k.tiny.d / "far/moved"}) {
    INFO("--resume " << from);
    const auto before = content_below(k.tiny.d / "run");
    const Ended end = k.tiny.run(k.tiny.train("second", {"--resume", from}));
    INFO(end.err);
    REQUIRE(end.code == 0);
    CHECK(content_below(k.tiny.d / "run") == before);
    const Outcome outcome = k.tiny.outcome("second");
    CHECK(outcome.root == k.expected.root);
    CHECK(outcome.model == k.expected.model);
    const int64_t first = from == k.state(1) ? newest : newest + 1;
    REQUIRE_FALSE(outcome.metrics.empty());
    CHECK(outcome.metrics.begin()->first == first);
    for (const auto& [step, line] : outcome.metrics) CHECK(line == k.expected.metrics.at(step));
    fs::remove_all(k.tiny.d / "second");
  }
  for (const std::string& from : {k.tiny.d / "model", k.tiny.d / "nothing",
                                  k.tiny.d / "run/state/step-00000099", k.tiny.d / "rows.jsonl"}) {
    INFO("--resume " << from);
    CHECK(wrong_refusal(k.tiny.run(k.tiny.train("second", {"--resume", from})), 2, {from}) == "");
    CHECK_FALSE(fs::exists(k.tiny.d / "second"));
  }

  // After the end: nothing is done, nothing changes.
  CHECK(k.wrong(k.tiny.train("run")) == "");
  CHECK(k.wrong_refused(k.tiny.train("run", {"--resume", "never"}), 2, {"--resume never"}) == "");
  const auto before = content_below(k.tiny.d / "run");
  CHECK(k.tiny.finish(k.tiny.train("run")) == "");
  CHECK(content_below(k.tiny.d / "run") == before);
  // What a kill after the end may have left goes.
  fs::create_directory(k.tiny.d / "run/.trash-model");
  fs::create_directory(k.tiny.d / "run/state/.tmp-step-00000004");
  overwrite(k.tiny.d / "run/.tmp-plan.json", "{");
  CHECK(k.tiny.finish(k.tiny.train("run")) == "");
  CHECK(content_below(k.tiny.d / "run") == before);
}

}  // namespace
}  // namespace hearth::test
