// File operations when all goes well, and when each call fails in turn.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/file_ops.h"
#include "support/failing_calls.h"
#include "support/faulty_calls.h"
#include "support/recording_calls.h"
#include "support/temporary_directory.h"

using namespace hearth;
using Catch::Matchers::ContainsSubstring;
using hearth::test::FailingCalls;
using hearth::test::FaultyCalls;
using hearth::test::RecordingCalls;
using hearth::test::TemporaryDirectory;

namespace {

std::string random_text(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + (i >> 8));
  return text;
}

ExitCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    CHECK_THAT(e.what(), ContainsSubstring("/"));  // names a path
    return e.code();
  }
  return ExitCode::done;
}

// Runs the action on fresh ground with call 1, 2, ... failing, until none fails any more. `check`
// sees whether the action succeeded. Says how many calls the action makes.
int fail_each_call(int error, const std::function<void()>& prepare,
                   const std::function<void()>& action,
                   const std::function<void(bool succeeded)>& check) {
  for (int n = 1;; ++n) {
    INFO("call " << n << " fails");
    prepare();
    FailingCalls calls;
    calls.fail_at = n;
    calls.error = error;
    ExitCode code;
    {
      FaultyCalls layer(calls);
      const FileCallsOverride guard(layer);
      code = code_of(action);
    }
    if (!calls.failed()) {
      CHECK(code == ExitCode::done);
      return n - 1;
    }
    CHECK((code == ExitCode::storage || code == ExitCode::done));
    check(code == ExitCode::done);
  }
}

}  // namespace

TEST_CASE("a small file is replaced as a whole, whichever call fails") {
  const TemporaryDirectory directory;
  const std::string path = directory / "file.json";
  const std::string old_text = "old", new_text = random_text(100000);
  for (const int error : {EIO, ENOSPC}) {
    const int calls = fail_each_call(
        error, [&] { write_file_atomically(path, old_text); },
        [&] { write_file_atomically(path, new_text); },
        [&](bool succeeded) {
          const std::string now = read_file(path);
          CHECK((now == new_text || (now == old_text && !succeeded)));
          CHECK(list_directory(directory.path()) == std::vector<std::string>{"file.json"});
        });
    CHECK(calls >= 8);  // unlink, open, write, sync, close, rename, open, sync, close
  }
}

TEST_CASE("a small file is durable before it replaces another, and its name after") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a", hidden = directory / ".tmp-a";
  RecordingCalls calls;
  const FileCallsOverride guard(calls);
  write_file_atomically(path, "text");
  CHECK(calls.lines == std::vector<std::string>{"write " + hidden, "sync " + hidden,
                                                "rename " + hidden + " " + path,
                                                "sync " + directory.path()});
  calls.lines.clear();
  make_directory(directory / "x/y");
  CHECK(calls.lines ==
        std::vector<std::string>{"sync " + directory.path(), "sync " + (directory / "x")});
}

TEST_CASE("every failed call of an output file is reported") {
  const TemporaryDirectory directory;
  const std::string path = directory / "file", text = random_text(70000);
  for (const int error : {EIO, ENOSPC}) {
    fail_each_call(
        error, [&] { remove_file(path); },
        [&] {
          OutputFile file(path);
          file.reserve(text.size());
          file.write(text.data(), text.size());
          file.close();
        },
        [&](bool succeeded) { CHECK_FALSE(succeeded); });
  }
  CHECK(read_file(path) == text);
  CHECK(code_of([&] { OutputFile again(path); }) == ExitCode::storage);
}

TEST_CASE("a file system that cannot reserve is no error") {
  const TemporaryDirectory directory;
  FailingCalls calls;
  const FileCallsOverride guard(calls);
  OutputFile file(directory / "file");
  calls.fail_at = calls.count() + 1;
  calls.error = EOPNOTSUPP;
  file.reserve(1000);
  CHECK(calls.failed());
  file.close();
  CHECK(file_info(directory / "file").size == 0);
}

TEST_CASE("interrupts and short transfers change nothing") {
  const TemporaryDirectory directory;
  const std::string text = random_text(5000);
  FailingCalls calls;
  calls.piece = 37;
  calls.interrupts = true;
  const FileCallsOverride guard(calls);
  make_directory(directory / "a/b");
  const std::string path = directory / "a/b/file";
  write_file_atomically(path, text);
  CHECK(read_file(path) == text);
  copy_file(path, directory / "copy");
  CHECK(read_file(directory / "copy") == text);
  AppendFile log(directory / "log");
  log.line(std::string(100, 'x'));
  log.line("y");
  log.sync();
  CHECK(read_file(directory / "log") == std::string(100, 'x') + "\ny\n");
  const FileLock lock(directory / ".lock", "it");
  rename_no_replace(directory / "copy", directory / "other");
  remove_tree(directory / "a");
  CHECK(file_info(directory / "a").kind == FileKind::none);
}

TEST_CASE("a read that fails or ends early is reported") {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file_atomically(path, random_text(1000));
  fail_each_call(
      EIO, [] {}, [&] { read_file(path); }, [&](bool) {});
  char buffer[10];
  const InputFile file(path);
  file.read(buffer, 10, 990);
  CHECK(code_of([&] { file.read(buffer, 10, 991); }) == ExitCode::input);
  REQUIRE(truncate(path.c_str(), 500) == 0);  // it shrinks under the reader
  CHECK(code_of([&] { file.read(buffer, 10, 600); }) == ExitCode::input);
  CHECK(code_of([&] { read_file(path, 499); }) == ExitCode::input);
}

TEST_CASE("only regular files are read") {
  const TemporaryDirectory directory;
  REQUIRE(mkfifo((directory / "fifo").c_str(), 0600) == 0);
  REQUIRE(symlink("missing", (directory / "dangling").c_str()) == 0);
  REQUIRE(symlink("loop", (directory / "loop").c_str()) == 0);
  for (const std::string& path :
       {directory / "fifo", directory.path(), std::string("/dev/zero"), directory / "none",
        directory / "dangling", directory / "loop", std::string("/dev/null/x"),
        directory / std::string("nul\0byte", 8)}) {
    INFO(path);
    CHECK(code_of([&] { InputFile file(path); }) == ExitCode::input);
  }
  CHECK(code_of([&] { InputFile file(std::string("/") + std::string(5000, 'a')); }) ==
        ExitCode::input);
}

TEST_CASE("a log line that could not be written whole can be tried again") {
  const TemporaryDirectory directory;
  const std::string path = directory / "log";
  for (const int error : {EIO, ENOSPC}) {
    for (int n = 1; n <= 4; ++n) {
      remove_file(path);
      AppendFile log(path);
      log.line("first");
      FailingCalls calls;
      calls.piece = 3;
      calls.fail_at = n;
      calls.error = error;
      {
        const FileCallsOverride guard(calls);
        CHECK(code_of([&] { log.line("second line"); }) == ExitCode::storage);
      }
      log.line("second line");
      log.line("third");
      CHECK(read_file(path) == "first\nsecond line\nthird\n");
    }
  }
  AppendFile log(path);
  log.line("fourth");
  CHECK(read_file(path) == "first\nsecond line\nthird\nfourth\n");
  CHECK_THROWS_AS(log.line("two\nlines"), std::logic_error);
}

TEST_CASE("only a torn last line is cut") {
  const TemporaryDirectory directory;
  const std::string path = directory / "log";
  cut_torn_line(path);
  CHECK(file_info(path).kind == FileKind::none);
  const std::string long_line(200000, 'x');
  struct Case {
    std::string before, after;
  };
  for (const Case& c : std::vector<Case>{{"", ""},
                                         {"a\nb\n", "a\nb\n"},
                                         {"a\nb", "a\n"},
                                         {"torn", ""},
                                         {"a\n" + long_line, "a\n"},
                                         {"a\n" + long_line + "\n", "a\n" + long_line + "\n"},
                                         {long_line, ""},
                                         {"\n", "\n"},
                                         {std::string("a\n\0\0\0", 5), "a\n"}}) {
    write_file_atomically(path, c.before);
    cut_torn_line(path);
    CHECK(read_file(path) == c.after);
    fail_each_call(
        EIO, [&] { write_file_atomically(path, c.before); }, [&] { cut_torn_line(path); },
        [&](bool) { CHECK((read_file(path) == c.before || read_file(path) == c.after)); });
  }
}

TEST_CASE("a copy is whole or not there") {
  const TemporaryDirectory directory;
  const std::string from = directory / "from", to = directory / "to";
  write_file_atomically(from, random_text(10000));
  fail_each_call(
      ENOSPC, [&] { remove_file(to); }, [&] { copy_file(from, to); },
      [&](bool succeeded) {
        if (!succeeded) CHECK(file_info(to).kind == FileKind::none);
      });
  CHECK(read_file(to) == read_file(from));
  CHECK(code_of([&] { copy_file(from, to); }) == ExitCode::storage);  // exists: left alone
  CHECK(read_file(to) == read_file(from));
}

TEST_CASE("renames keep or replace as asked") {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "a", "a");
  write_file_atomically(directory / "b", "b");
  CHECK(code_of([&] { rename_no_replace(directory / "a", directory / "b"); }) == ExitCode::storage);
  CHECK(read_file(directory / "b") == "b");
  rename_replace(directory / "a", directory / "b");
  CHECK(read_file(directory / "b") == "a");
  make_directory(directory / "d1");
  make_directory(directory / "d2");
  CHECK(code_of([&] { rename_no_replace(directory / "d1", directory / "d2"); }) ==
        ExitCode::storage);
}

TEST_CASE("directories are made with their parents and removed without following links") {
  const TemporaryDirectory directory;
  make_directory(directory / "x/y//z/");
  make_directory(directory / "x/y/z");
  CHECK(file_info(directory / "x/y/z").kind == FileKind::directory);
  write_file_atomically(directory / "precious", "kept");
  REQUIRE(symlink("../precious", (directory / "x/link").c_str()) == 0);
  REQUIRE(symlink(directory.path().c_str(), (directory / "x/y/up").c_str()) == 0);
  CHECK(file_info(directory / "x/link").is_link);
  CHECK(file_info(directory / "x/link").kind == FileKind::regular);
  CHECK(list_directory(directory / "x") == std::vector<std::string>{"link", "y"});
  CHECK(code_of([&] { make_directory(directory / "precious/sub"); }) == ExitCode::storage);
  remove_tree(directory / "x");
  CHECK(list_directory(directory.path()) == std::vector<std::string>{"precious"});
  CHECK(read_file(directory / "precious") == "kept");
  remove_tree(directory / "x");
  remove_file(directory / "x");
  CHECK(free_bytes(directory.path()) > 0);
  CHECK(code_of([&] { list_directory(directory / "x"); }) == ExitCode::storage);
}

TEST_CASE("a lock is held by one") {
  FaultyCalls calls;
  const FileCallsOverride guard(calls);
  const TemporaryDirectory directory;
  const std::string path = directory / ".lock";
  {
    const FileLock lock(path, "the run directory");
    CHECK(code_of([&] { FileLock second(path, "the run directory"); }) == ExitCode::usage);
  }
  CHECK_NOTHROW(FileLock(path, "the run directory"));
}
