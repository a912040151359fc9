// Checks that are remembered between starts: only if everything is as it was, and the file is whole.
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

#include "base/file_ops.h"
#include "runtime/remembered_checks.h"
#include "support/temporary_directory.h"

namespace hearth::test {
namespace {

std::string only_file(const std::string& directory) {
  const std::vector<std::string> names = list_directory(directory);
  REQUIRE(names.size() == 1);
  return directory + "/" + names.front();
}

TEST_CASE("remembered checks: a check that passed is known to the next start, no other is") {
  const TemporaryDirectory directory;
  const RememberedChecks checks(directory / "new/checks");
  CHECK_FALSE(checks.has_passed("driver 1, library 2"));
  checks.remember("driver 1, library 2");
  const RememberedChecks later(directory / "new/checks");
  CHECK(later.has_passed("driver 1, library 2"));
  CHECK_FALSE(later.has_passed("driver 1, library 3"));
  CHECK_FALSE(later.has_passed("driver 1, library 2\n"));
  CHECK_FALSE(later.has_passed(""));
}

TEST_CASE("remembered checks: without a directory nothing is kept") {
  const RememberedChecks checks("");
  checks.remember("a");
  CHECK_FALSE(checks.has_passed("a"));
}

TEST_CASE("remembered checks: a damaged or foreign file is ignored, and replaced") {
  const TemporaryDirectory directory;
  const RememberedChecks checks(directory / "checks");
  checks.remember("a");
  const std::string path = only_file(directory / "checks");
  const std::string whole = read_file(path);
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  for (const std::string& content : {std::string(), whole.substr(0, whole.size() - 1), whole + "x",
                                     flipped, std::string(1 << 20, 'x'), std::string(3, '\0')}) {
    write_file_atomically(path, content);
    CHECK_FALSE(checks.has_passed("a"));
    checks.remember("a");
    CHECK(checks.has_passed("a"));
  }
  // A link, even to the right content; a directory; a file of somebody else.
  write_file_atomically(directory / "elsewhere", whole);
  remove_file(path);
  REQUIRE(symlink((directory / "elsewhere").c_str(), path.c_str()) == 0);
  CHECK_FALSE(checks.has_passed("a"));
  remove_file(path);
  make_directory(path);
  CHECK_FALSE(checks.has_passed("a"));
  CHECK_NOTHROW(checks.remember("a"));
  CHECK_FALSE(checks.has_passed("a"));
  remove_tree(path);
  checks.remember("a");
  CHECK(checks.has_passed("a"));
  if (geteuid() == 0) {
    REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
    CHECK_FALSE(checks.has_passed("a"));
  }
}

TEST_CASE("remembered checks: a place that cannot be written is no error") {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "no directory");
  const RememberedChecks checks(directory / "file/checks");
  CHECK_NOTHROW(checks.remember("a"));
  CHECK_FALSE(checks.has_passed("a"));
}

TEST_CASE("remembered checks: they stay few") {
  const TemporaryDirectory directory;
  const RememberedChecks checks(directory / "checks");
  for (int i = 0; i < 3 * RememberedChecks::kMost; ++i) {
    checks.remember(std::to_string(i));
    CHECK(checks.has_passed(std::to_string(i)));
  }
  CHECK(std::ssize(list_directory(directory / "checks")) <= RememberedChecks::kMost);
}

TEST_CASE("remembered checks: the program is known by its file") {
  CHECK(identity_of_program() == identity_of_program());
  CHECK(identity_of_program().find(" 0 bytes") == std::string::npos);
}

}  // namespace
}  // namespace hearth::test
