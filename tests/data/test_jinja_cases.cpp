// The snippets of tests/golden/chat/snippets.jsonl, as jinja2 renders them in the environment of
// transformers. HEARTH_SNIPPETS names another file of the same kind (scripts/parity/templates.py).
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/file_ops.h"
#include "jinja/jinja.h"
#include "support/test_paths.h"

using namespace hearth;

namespace {

// What is left out, by a part of the message; jinja2 renders something there.
constexpr const char* kLeftOut[] = {
    "not supported",
    "64 bits",
    "names can only have the letters",
    "unknown filter 'xmlattr'",
    "complex numbers",
    "truncate: expected a text",
    "an item of several numbers",
    "a number that is too large",
    "a format of an integer has no precision",
    "a format with a precision needs a type",
    "a format that does not fit float",
    "format: unknown conversion",
    "a base of 2, 8, 10 or 16",
    "from 1 to 100000",
    "a width above",
};

bool is_left_out(const std::string& message) {
  for (const char* part : kLeftOut) {
    if (message.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("snippets as jinja2 renders them") {
  const char* other = std::getenv("HEARTH_SNIPPETS");
  std::istringstream lines(
      read_file(other != nullptr ? other : test::test_data("/chat/snippets.jsonl")));
  std::string line;
  std::getline(lines, line);
  const Json head = parse_json(line, "snippets");
  std::vector<std::pair<std::string, jinja::Value>> variables;
  for (const auto& [name, value] : head.find("variables")->as_object()) {
    variables.emplace_back(name, jinja::Value::from_json(value));
  }
  size_t count = 0;
  size_t left_out = 0;
  while (std::getline(lines, line)) {
    const Json snippet = parse_json(line, "snippets");
    const std::string& source = snippet.as_array()[0].as_string();
    const Json& expected = snippet.as_array()[1];
    INFO(source);
    ++count;
    try {
      jinja::Limits limits;
      const jinja::Template parsed(source, "snippet");
      const std::string got =
          parsed.render(variables, head.find("date")->as_string(), "row", limits).text;
      INFO("rendered as " << Json(got).dump());
      REQUIRE_FALSE(expected.is_null());
      REQUIRE(got == expected.as_string());
    } catch (const Error& error) {
      INFO(error.what());
      const bool omitted = !expected.is_null() && is_left_out(error.what());
      left_out += omitted ? 1 : 0;
      REQUIRE((expected.is_null() || omitted));
    }
  }
  CHECK(count > 5000);
  CHECK(left_out < count / 100);
  if (other != nullptr) WARN(count << " snippets, " << left_out << " left out");
}
