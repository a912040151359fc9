// The real program in surroundings that users do have: streams that are closed or broken, odd names,
// other locales, few descriptors, no home.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/file_ops.h"
#include "durable/tiny_run.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

/// A finished run, and its like in other surroundings.
struct Surroundings {
  TinyRun tiny;
  Outcome expected;
  Surroundings() {
    REQUIRE(tiny.run(tiny.train("whole")).code == 0);
    expected = tiny.outcome("whole");
  }
  /// "" where such a start ends with 0 and the bits of the finished run; its directory goes.
  std::string wrong(const Start& start, const std::string& out = "run") const {
    const Ended end = tiny.run(start);
    if (end.code != 0) return "code " + std::to_string(end.code) + ": " + end.err;
    const std::string wrong = tiny.wrong_at_end(out, 2, expected);
    fs::remove_all(tiny.d / out);
    return wrong;
  }
};

TEST_CASE("surroundings: streams that are closed, broken or full") {
  const Surroundings s;
  for (const Stream stream : {Stream::closed, Stream::broken, Stream::full}) {
    INFO("kind " << static_cast<int>(stream));
    for (const int which : {0, 1, 2, 3}) {
      INFO("stream " << which << " (3: all)");
      Start start = s.tiny.train("run");
      std::erase(start.words, "--quiet");  // something is printed
      if (which == 0 || which == 3) start.in = stream;
      if (which == 1 || which == 3) start.out = stream;
      if (which == 2 || which == 3) start.err = stream;
      CHECK(s.wrong(start) == "");
    }
    // Results that cannot be printed are no success.
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"inspect", s.tiny.d / "whole/state/step-00000010", "--digest",
                                   "--json"},
          std::vector<std::string>{"eval", "--model", s.tiny.d / "model", "--data",
                                   s.tiny.d / "rows.jsonl", "--json"},
          std::vector<std::string>{"--help"}}) {
      Start start = s.tiny.command(words);
      start.out = stream;
      INFO(words[0]);
      const Ended end = s.tiny.run(start);
      INFO(end.err);
      // Help into a pipe that nobody reads any more is no failure (hearth --help | head).
      CHECK(end.code == (words[0] == "--help" && stream == Stream::broken ? 0 : 4));
    }
  }
}

TEST_CASE(
    "surroundings: umask, locale, few descriptors, no home and no place for temporary files") {
  const Surroundings s;
  Start start = s.tiny.train("run");
  start.mask = 0077;
  REQUIRE(s.tiny.run(start).code == 0);
  for (const auto& entry : fs::recursive_directory_iterator(s.tiny.d / "run")) {
    struct stat info = {};
    REQUIRE(::stat(entry.path().c_str(), &info) == 0);
    INFO(entry.path());
    CHECK((info.st_mode & 0077) == 0);
  }
  CHECK(s.wrong(start) == "");

  for (const char* locale : {"de_DE.UTF-8", "de_DE", "C", "nonsense"}) {
    INFO(locale);
    start = s.tiny.train("run");
    start.environment["LC_ALL"] = start.environment["LANG"] = locale;
    CHECK(s.wrong(start) == "");
  }

  // Enough or not, but never half a run.
  bool enough = false;
  for (const rlim_t most : {3, 4, 5, 6, 8, 10, 12, 16, 24}) {
    INFO(most << " descriptors");
    start = s.tiny.train("run");
    start.limits = {{RLIMIT_NOFILE, most}};
    const Ended end = s.tiny.run(start);
    enough = end.code == 0;
    if (enough) {
      CHECK(s.tiny.wrong_at_end("run", 2, s.expected) == "");
    } else {
      INFO(end.code << end.err);
      // What cannot even load its libraries ends with 127.
      CHECK((end.code == 127 || end.code == 4));
      CHECK(s.tiny.wrong_between("run", 2) == "");
      CHECK(s.tiny.finish(s.tiny.train("run")) == "");
      CHECK(s.tiny.wrong_at_end("run", 2, s.expected) == "");
    }
    fs::remove_all(s.tiny.d / "run");
  }
  CHECK(enough);

  start = s.tiny.train("run");
  for (const char* name : {"HOME", "TMPDIR", "XDG_CACHE_HOME", "PATH", "USER", "TERM"}) {
    start.environment[name] = std::nullopt;
  }
  CHECK(s.wrong(start) == "");
  start.environment["TMPDIR"] = start.environment["HOME"] = "/does/not/exist";
  CHECK(s.wrong(start) == "");
  start.environment["XDG_CACHE_HOME"] = s.tiny.d / "rows.jsonl/cache";  // below a file
  CHECK(s.wrong(start) == "");
}

TEST_CASE("surroundings: odd names and long paths") {
  const Surroundings s;
  for (const std::string& name :
       {std::string("with space"), std::string("ümläut-日本語"), std::string("quote'\"$(x)*?"),
        std::string("\xff\xfe not UTF-8"), std::string("a:b,c=d#e"), std::string("-dash"),
        std::string("back\\slash"), std::string(255, 'n')}) {
    INFO(name);
    CHECK(s.wrong(s.tiny.train(name), name) == "");
  }
  // As long as the system takes them, then an error and nothing half done.
  std::string deep;
  while (deep.size() < 3900) deep += std::string(99, 'd') + "/";
  int done = 0, refused = 0;
  for (size_t more = 0; more < 300; more += 25) {
    const size_t cut = 4096 - 200 + more;
    std::string out = deep + std::string(99, 'd') + "/" + std::string(99, 'd');
    out.resize(cut - s.tiny.d.path().size() - 1);
    if (out.ends_with('/')) out.back() = 'd';
    INFO("a path of " << s.tiny.d.path().size() + 1 + out.size() << " bytes");
    const Ended end = s.tiny.run(s.tiny.train(out));
    INFO(end.code << " " << end.err.substr(0, 100) << "..."
                  << end.err.substr(end.err.size() < 200 ? 0 : end.err.size() - 200));
    CHECK((end.code == 0 || end.code == 3 || end.code == 4));
    (end.code == 0 ? done : refused) += 1;
    fs::remove_all(s.tiny.d / std::string(99, 'd'));
  }
  CHECK(done > 0);
  CHECK(refused > 0);
}

TEST_CASE("surroundings: relative paths, a directory that cannot be written, a moved run") {
  const Surroundings s;
  // A training with relative names, its run directory moved and everything resumed from elsewhere.
  const auto relative = [&](const std::string& out, const std::string& directory,
                            const std::string& up) {
    Start start = s.tiny.train(out);
    const std::string root = s.tiny.d.path() + "/";
    for (std::string& word : start.words) {
      if (word.starts_with(root)) word = up + word.substr(root.size());
    }
    start.directory = directory;
    return start;
  };
  CHECK(s.wrong(relative("run", s.tiny.d.path(), "")) == "");
  Start start = relative("run", s.tiny.d.path(), "");
  start.environment["HEARTH_KILL_AT"] = "700";
  REQUIRE(s.tiny.run(start).code == 128 + SIGKILL);
  REQUIRE_FALSE(steps_of_states(s.tiny.d / "run").empty());
  fs::create_directory(s.tiny.d / "elsewhere");
  fs::rename(s.tiny.d / "run", s.tiny.d / "elsewhere/moved");
  CHECK(s.wrong(relative("elsewhere/moved", s.tiny.d.path(), ""), "elsewhere/moved") == "");
  if (::geteuid() != 0) SKIP("needs root");
  // In a working directory that may not be written; nothing is left in it.
  ::chmod(s.tiny.d.path().c_str(), 0755);
  fs::create_directory(s.tiny.d / "own");
  ::chmod((s.tiny.d / "own").c_str(), 0777);
  fs::create_directory(s.tiny.d / "locked");
  start = relative("own/run", s.tiny.d / "locked", "../");
  start.environment["XDG_CACHE_HOME"] = s.tiny.d / "own/cache";
  start.nobody = true;
  CHECK(s.wrong(start, "own/run") == "");
  CHECK(fs::is_empty(s.tiny.d / "locked"));
}

TEST_CASE("surroundings: a second process in a run directory ends with 2 and touches nothing") {
  const Surroundings s;
  for (const char* call : {"30", "300", "900", "1500"}) {
    INFO("while the first one stands before call " << call);
    Start first = s.tiny.train("run");
    first.environment["HEARTH_KILL_AT"] = call;
    first.environment["HEARTH_KILL_BY"] = std::to_string(SIGSTOP);
    Process process(test_binary(), first);
    REQUIRE(process.wait_for_stop());
    const bool owned = fs::exists(s.tiny.d / "run/.lock");
    if (owned) {
      const auto before = content_below(s.tiny.d / "run");
      CHECK(wrong_refusal(s.tiny.run(s.tiny.train("run")), 2, {s.tiny.d / "run"}) == "");
      CHECK(content_below(s.tiny.d / "run") == before);
    }
    process.signal(SIGCONT);
    CHECK(process.wait().code == 0);
    CHECK(s.tiny.wrong_at_end("run", 2, s.expected) == "");
    CHECK(owned);
    fs::remove_all(s.tiny.d / "run");
  }
}

}  // namespace
}  // namespace hearth::test
