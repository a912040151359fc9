#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <locale>
#include <random>

#include "base/error.h"
#include "base/json.h"

using namespace hearth;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string refusal(std::string_view text) {
  try {
    parse_json(text, "test.json");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::input);
    CHECK_THAT(e.what(), ContainsSubstring("test.json: line "));
    return e.what();
  }
  return "accepted";
}

uint64_t bits_after_round_trip(double value) {
  const Json back = parse_json(Json(value).dump(), "round trip");
  CHECK_FALSE(back.is_integer());
  return std::bit_cast<uint64_t>(back.as_double());
}

}  // namespace

TEST_CASE("doubles read back to the same bits") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t bits = random();
    const auto value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) continue;
    REQUIRE(std::bit_cast<uint64_t>(parse_json(Json(value).dump(), "").as_double()) == bits);
  }
  for (const double value : {0.0, -0.0, 1.0, -1.0, 1e22, 1e23, 0.1, 5e-324, 2.2250738585072014e-308,
                             1.7976931348623157e308, 9007199254740993.0, 1e15, 123456789.0}) {
    CHECK(bits_after_round_trip(value) == std::bit_cast<uint64_t>(value));
  }
  CHECK(Json(1.0).dump() == "1.0");
  CHECK(Json(0.1).dump() == "0.1");
  CHECK(Json(std::numeric_limits<double>::infinity()).dump() == "null");
  CHECK(Json(std::numeric_limits<double>::quiet_NaN()).dump() == "null");
}

TEST_CASE("integers keep all 64 bits and their type") {
  const Json j =
      parse_json("[-9223372036854775808, 9223372036854775807, 18446744073709551615, 0]", "");
  CHECK(j.as_array()[0].as_int() == std::numeric_limits<int64_t>::min());
  CHECK(j.as_array()[1].as_int() == std::numeric_limits<int64_t>::max());
  CHECK(j.as_array()[1].as_uint() == 9223372036854775807u);
  CHECK(j.as_array()[2].as_uint() == std::numeric_limits<uint64_t>::max());
  CHECK_FALSE(j.as_array()[2].is_signed());
  CHECK_THROWS_AS(j.as_array()[2].as_int(), std::logic_error);
  CHECK_THROWS_AS(j.as_array()[0].as_uint(), std::logic_error);
  CHECK(j.dump() == "[-9223372036854775808, 9223372036854775807, 18446744073709551615, 0]");
  CHECK(Json(uint64_t{7}).is_signed());
  CHECK_FALSE(parse_json("1.0", "").is_integer());
  CHECK_FALSE(parse_json("1e2", "").is_integer());
}

TEST_CASE("integers beyond 64 bits keep their digits and are no count") {
  const std::string digits = std::string(4300, '7');
  for (const std::string& text :
       {std::string("18446744073709551616"), std::string("-9223372036854775809"),
        "1" + std::string(400, '0'), digits, "-" + digits}) {
    const Json j = parse_json("{\"n\": " + text + "}", "");
    const Json& big = *j.find("n");
    CHECK(big.is_big_integer());
    CHECK(big.as_digits() == text);
    CHECK(big.dump() == text);
    CHECK(j.dump() == "{\"n\": " + text + "}");
    CHECK_FALSE(big.is_integer());
    CHECK_FALSE(big.is_number());
    CHECK_FALSE(big.is_object());
    CHECK_THROWS_AS(big.as_int(), std::logic_error);
  }
  CHECK_THROWS_AS(Json(1).as_digits(), std::logic_error);
}

TEST_CASE("texts that break a rule are refused with their place") {
  CHECK_THAT(refusal(std::string(4301, '1')), ContainsSubstring("more than 4300 digits"));
  CHECK_THAT(refusal("-" + std::string(100000, '1')), ContainsSubstring("more than 4300 digits"));
  CHECK_THAT(refusal("[1,\n 1e999]"),
             ContainsSubstring("line 2") && ContainsSubstring("too large"));
  CHECK_THAT(refusal("[1e99999999999]"), ContainsSubstring("too large"));
  CHECK_THAT(refusal("{\"a\": 1, \"b\": 2,\n\"a\": 3}"), ContainsSubstring("duplicate key 'a'"));
  CHECK_THAT(refusal("{\"x\": {\"\\u0061\": 1, \"a\": 3}}"),
             ContainsSubstring("duplicate key 'a'"));
  CHECK_THAT(refusal("{\"a\": \"\xff\"}"), ContainsSubstring("column 8: invalid UTF-8"));
  CHECK_THAT(refusal("\xef\xbb\xbf{}"), ContainsSubstring("byte order mark"));
  CHECK_THAT(refusal("{}\n {}"), ContainsSubstring("line 2, column 2"));
  CHECK_THAT(refusal(std::string("{}\0junk", 7)), ContainsSubstring("NUL"));
  CHECK_THAT(refusal(std::string(65, '[') + std::string(65, ']')), ContainsSubstring("64 levels"));
  CHECK_NOTHROW(parse_json(std::string(64, '[') + std::string(64, ']'), ""));
  CHECK_THAT(refusal(std::string(10'000'000, '[')), ContainsSubstring("64 levels"));
  for (const char* text :
       {"",         " ",         "{",          "[",           "[1,]",
        "{\"a\":}", "{\"a\" 1}", "{a: 1}",     "'a'",         "nul",
        "NaN",      "Infinity",  "-",          "01",          "1.",
        ".5",       "+1",        "1e",         "0x1",         "\"a",
        "\"\\q\"",  "\"\\u12\"", "\"\t\"",     "\"\\ud800\"", "\"\\udc00\\ud800\"",
        "[1] x",    "// c\n1",   "{\"a\":1,}", "\x0b{}"}) {
    INFO(text);
    CHECK(refusal(text) != "accepted");
  }
}

TEST_CASE("an error line quotes no more than it may") {
  const std::string long_key(5000, 'k');
  const std::string message = refusal("{\"" + long_key + "\":1,\"" + long_key + "\":2}");
  CHECK(message.size() < 400);
  CHECK(refusal("\"" + std::string(100000, 'a')).size() < 400);
  CHECK(refusal("[" + std::string(100000, '1') + "]").size() < 400);
}

TEST_CASE("strings are escaped and kept") {
  const std::string text = "a\"b\\c\n\r\t\x01\x1f\x7f \xc3\xa9 \xf0\x9f\x94\xa5";
  const std::string dump = Json(text).dump();
  CHECK(dump == "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u001f\\u007f \xc3\xa9 \xf0\x9f\x94\xa5\"");
  CHECK(parse_json(dump, "").as_string() == text);
  CHECK(Json(std::string("a\xff"
                         "b"))
            .dump() ==
        "\"a\xef\xbf\xbd"
        "b\"");
  CHECK(parse_json("\"\\ud83d\\udd25\"", "").as_string() == "\xf0\x9f\x94\xa5");
  CHECK(parse_json("\"\\u0000\"", "").as_string() == std::string(1, '\0'));
}

TEST_CASE("members keep their order, and documents read back") {
  Json j;
  j["z"] = 1;
  j["a"] = JsonArray{Json(), true, "x", JsonObject{}, JsonArray{}};
  j["z"] = 2;
  j["list"].push_back(1.5);
  const std::string line = "{\"z\": 2, \"a\": [null, true, \"x\", {}, []], \"list\": [1.5]}";
  CHECK(j.dump() == line);
  CHECK(parse_json(line, "").dump() == line);
  CHECK(parse_json(j.dump(2), "").dump() == line);
  CHECK(j.dump(2).starts_with("{\n  \"z\": 2,\n  \"a\": [\n    null,"));
  CHECK(j.find("a") != nullptr);
  CHECK(j.find("b") == nullptr);
  CHECK(Json(1).find("b") == nullptr);
}

namespace {

class DecimalComma : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

void check_numbers() {
  CHECK(parse_json("[1.5, 2.25e1]", "").as_array()[1].as_double() == 22.5);
  CHECK(Json(1234567.5).dump() == "1234567.5");
  CHECK(Json(1234567).dump() == "1234567");
  CHECK(parse_json("18446744073709551616", "").dump() == "18446744073709551616");
}

}  // namespace

TEST_CASE("numbers do not depend on the locale of C++") {
  const std::locale before = std::locale::global(std::locale(std::locale(), new DecimalComma));
  check_numbers();
  std::locale::global(before);
}

TEST_CASE("numbers do not depend on the locale of C") {
  if (!std::setlocale(LC_ALL, "de_DE.UTF-8") && !std::setlocale(LC_ALL, "fr_FR.UTF-8")) {
    SKIP("no locale with a decimal comma on this machine");
  }
  check_numbers();
  std::setlocale(LC_ALL, "C");
}
