// The cache of tokenised rows: what is found again, what is made anew, what goes, and what is left.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <thread>

#include "base/error.h"
#include "base/file_times.h"
#include "data/samples/row_cache.h"
#include "data/samples/row_key.h"
#include "run_rows_fixture.h"
#include "support/failing_calls.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  if (file_info(directory).kind != FileKind::directory) return names;
  for (const std::string& name : list_directory(directory)) {
    if (!name.starts_with(".lock-")) names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("a second start finds the rows of the first") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 300);
  const auto cold = fixture.read({path});
  REQUIRE(entries(fixture.cache()).size() == 1);
  const auto before = modified_time(fixture.cache() + "/" + entries(fixture.cache())[0]);
  fixture.tokenised = 0;
  const auto warm = fixture.read({path});
  CHECK(fixture.tokenised == 0);
  CHECK(entries(fixture.cache()).size() == 1);
  CHECK(modified_time(fixture.cache() + "/" + entries(fixture.cache())[0]) > before);
  fixture.request.cache = {};
  const auto none = fixture.read({path});
  CHECK(contents(*warm) == contents(*cold));
  CHECK(contents(*none) == contents(*cold));
  CHECK(warm->digests() == cold->digests());
  CHECK(warm->summary().totals.tokens == cold->summary().totals.tokens);
  struct stat status;
  REQUIRE(::stat(fixture.cache().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE("the key tells apart what makes other tokens, and nothing else") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 5);
  std::vector<Digest> keys;
  const auto key = [&](const RowOptions& options, const std::string& file = "rows.jsonl") {
    return row_key(conversion_key(options), Digest{1, 2}, file);
  };
  const RowOptions base = fixture.request.rows;
  const Digest first = key(base);
  RowOptions other = base;
  other.seq_len = 7;
  other.overflow = Overflow::drop;
  other.skip_bad_rows = 3;
  CHECK(key(other) == first);
  CHECK(key(base, "/other/folder/name.jsonl") == first);

  keys.push_back(first);
  keys.push_back(key(base, "rows.txt"));
  keys.push_back(row_key(conversion_key(base), Digest{1, 3}, "rows.jsonl"));
  other = base;
  other.format = RowFormat::text;
  keys.push_back(key(other));
  other = base;
  other.train_on = TrainOn::all;
  keys.push_back(key(other));
  other = base;
  other.no_special_in_content = true;
  keys.push_back(key(other));
  other = base;
  other.vocabulary = 300;
  keys.push_back(key(other));
  other = base;
  other.chat_template =
      fixture.file("other.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  keys.push_back(key(other));
  fixture.file("other.jinja", "{% for m in messages %}{{ m.role }}{% endfor %}");
  keys.push_back(key(other));
  fixture.file("other.jinja", "{{ strftime_now('%Y') }}");
  other.template_date = "2024-01-01";
  keys.push_back(key(other));
  other.template_date = "2025-01-01";
  keys.push_back(key(other));
  fixture.file("tokenizer.json", read_file(fixture.directory / "tokenizer.json") + " ");
  keys.push_back(key(base));
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      CAPTURE(i, j);
      CHECK(keys[i] != keys[j]);
    }
  }
}

TEST_CASE("changed content is read anew") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 5);
  const auto before = fixture.read({path});
  std::string text = read_file(path);
  text[text.find("number 3") + 7] = '4';  // as long, and as old, as before
  struct stat status;
  REQUIRE(::stat(path.c_str(), &status) == 0);
  fixture.file("rows.jsonl", text);
  const timespec times[2] = {status.st_atim, status.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  const auto after = fixture.read({path});
  CHECK(contents(*after) != contents(*before));
  CHECK(after->digests() != before->digests());
}

TEST_CASE("a damaged entry is made anew") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 3);
  const auto expected = contents(*fixture.read({path}));
  const std::string entry = fixture.cache() + "/" + entries(fixture.cache())[0];
  const std::string whole = read_file(entry);
  for (size_t at = 0; at < whole.size(); at += 11) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_file_atomically(entry, damaged);
    REQUIRE(contents(*fixture.read({path})) == expected);
    REQUIRE(read_file(entry) == whole);
  }
  write_file_atomically(entry, whole.substr(0, whole.size() / 2));
  CHECK(contents(*fixture.read({path})) == expected);
}

TEST_CASE("what was not used for the longest time goes first") {
  RunRowsFixture fixture;
  std::vector<std::string> paths;
  for (int i = 0; i < 4; ++i) {
    paths.push_back(fixture.chats("rows" + std::to_string(i) + ".jsonl", 20 + i));
  }
  fixture.read({paths[0]});
  const uint64_t size = file_info(fixture.cache() + "/" + entries(fixture.cache())[0]).size;
  fixture.request.cache.most_bytes = size * 7 / 2;  // three of them
  fixture.read({paths[1]});
  fixture.read({paths[2]});
  fixture.read({paths[0]});  // used again
  fixture.read({paths[3]});
  CHECK(entries(fixture.cache()).size() == 3);
  fixture.tokenised = 0;
  fixture.read({paths[0]});
  fixture.read({paths[2]});
  fixture.read({paths[3]});
  CHECK(fixture.tokenised == 0);
  fixture.read({paths[1]});
  CHECK(fixture.tokenised > 0);

  // Larger than all that may be kept: used, not kept.
  fixture.request.cache.most_bytes = size / 2;
  const auto big = fixture.chats("big.jsonl", 50);
  const auto expected = contents(*fixture.read({big}));
  const auto names = entries(fixture.cache());
  fixture.request.cache.most_bytes = 0;
  CHECK(contents(*fixture.read({big})) == expected);
  CHECK(entries(fixture.cache()) == names);
}

TEST_CASE("processes that start at once make one entry") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 2000);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool good = false;
      try {
        fixture.request.threads = 1;
        good = fixture.read({path})->summary().totals.rows == 2000;
      } catch (...) {
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  REQUIRE(entries(fixture.cache()).size() == 1);
  fixture.tokenised = 0;
  CHECK(fixture.read({path})->summary().totals.rows == 2000);
  CHECK(fixture.tokenised == 0);
}

TEST_CASE("what a killed process left is cleaned by the next") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 3000);
  const pid_t child = ::fork();
  if (child == 0) {
    fixture.request.hooks.progress = [](const std::string& what, uint64_t done, uint64_t) {
      if (what.starts_with("tokenizing") && done > 0) ::raise(SIGKILL);
    };
    fixture.request.threads = 1;
    fixture.request.cache.most_in_memory = 0;
    try {
      fixture.read({path});
    } catch (...) {
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  // The same place, as one that outgrew memory leaves it.
  make_directory(fixture.cache());
  fixture.file("cache/hearth/rows/.tmp-" + Digest{5, 6}.hex(), "words");
  fixture.file("cache/hearth/rows/.tmp-nameless-77-0", "words");
  CHECK(fixture.read({path})->summary().totals.rows == 3000);
  const auto names = entries(fixture.cache());
  REQUIRE(names.size() == 1);
  CHECK(names[0].ends_with(".rows"));
}

TEST_CASE("a cache that cannot be written costs a warning, nothing else") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 40);
  const auto expected = contents(*fixture.read({path}));
  remove_tree(fixture.directory / "cache");
  fixture.file("cache", "a file stands in the way");
  CHECK(contents(*fixture.read({path})) == expected);
  remove_file(fixture.directory / "cache");

  // Whatever call fails, rows are right or the error is one of storage; nothing stays half done.
  for (const int error : {ENOSPC, EACCES, EIO}) {
    for (int at = 1;; ++at) {
      FailingCalls calls;
      calls.fail_at = at;
      calls.error = error;
      bool failed = false;
      {
        const FileCallsOverride override(calls);
        try {
          const auto read = contents(*fixture.read({path}));
          REQUIRE(read == expected);
        } catch (const Error& e) {
          REQUIRE(e.code() == ExitCode::storage);
        }
        failed = calls.failed();
      }
      for (const std::string& name : entries(fixture.cache())) {
        REQUIRE(name.ends_with(".rows"));
      }
      REQUIRE(contents(*fixture.read({path})) == expected);
      remove_tree(fixture.directory / "cache");
      if (!failed) break;
    }
  }
}
