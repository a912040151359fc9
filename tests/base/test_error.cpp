#include <catch2/catch_test_macros.hpp>
#include <string>

#include "base/error.h"
#include "base/utf8.h"

using namespace hearth;

TEST_CASE("every kind of error leads to its exit code") {
  CHECK(usage_error("m").code() == ExitCode::usage);
  CHECK(input_error("m").code() == ExitCode::input);
  CHECK(storage_error("m").code() == ExitCode::storage);
  CHECK(numeric_error("m").code() == ExitCode::numeric);
  CHECK(device_error("m").code() == ExitCode::device);
  CHECK(std::string(input_error("plain text").what()) == "plain text");
}

TEST_CASE("hostile text cannot write to the terminal") {
  CHECK(quoted("plain \xc3\xa9") == "'plain \xc3\xa9'");
  CHECK(quoted("a\x1b[31mb\nc\r\t\x7f") ==
        "'a?[31mb?c?"
        "?"
        "?'");
  CHECK(quoted("\xff\xc2\x9b"
               "x\xe2\x80\xae") ==
        "'?"
        "?x?'");  // invalid, C1 control, reversed text
  CHECK(quoted(std::string(200, 'a')) == "'" + std::string(200, 'a') + "'");
  CHECK(quoted(std::string(100000, 'a')) == "'" + std::string(200, 'a') + "...'");
  std::string wide;
  for (int i = 0; i < 300; ++i) wide += "\xc3\xa9";
  CHECK(find_invalid_utf8(quoted(wide)) == std::string::npos);
  CHECK(quoted(wide).size() == 400 + 5);
  CHECK(std::string(input_error("dir/a\nb\x1b: bad").what()) == "dir/a?b?: bad");
}

TEST_CASE("a broken invariant is a bug, with its place") {
  try {
    HEARTH_CHECK(1 == 2, "arithmetic");
    FAIL("not raised");
  } catch (const std::logic_error& e) {
    const std::string what = e.what();
    CHECK(what.find("test_error.cpp:") != std::string::npos);
    CHECK(what.find("1 == 2: arithmetic") != std::string::npos);
  }
}
