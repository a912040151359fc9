// One member of a JSON text is changed, every other byte stays.
#include "checkpoint/json_edit.h"

#include <catch2/catch_test_macros.hpp>

#include "support/raises.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::string edited(const std::string& text, const Json& value = "new") {
  return with_member(text, "key", value, "file");
}

}  // namespace

TEST_CASE("json edit: the value of a member, and nothing else") {
  CHECK(edited(R"({"key": "old"})") == R"({"key": "new"})");
  CHECK(edited(R"( {"a":1e300,"key":["}","]",{"key":1}] ,"b":1000000000000000019884624838656 })") ==
        R"( {"a":1e300,"key":"new","b":1000000000000000019884624838656 })");
  CHECK(edited(R"({"a": {"key": 1}, "b": "\"key\": \\", "key": {"c": "\""}})") ==
        R"({"a": {"key": 1}, "b": "\"key\": \\", "key": "new"})");
  CHECK(edited("{\"k\\u0065y\"\n:\ttrue}") == "{\"k\\u0065y\"\n:\t\"new\"}");
  CHECK(edited(R"({"key": null})", JsonArray{1, "x"}) == R"({"key": [1, "x"]})");
}

TEST_CASE("json edit: a member that is not there is added at the end") {
  CHECK(edited("{}") == "{\n  \"key\": \"new\"\n}");
  CHECK(edited(" { } ") == " {\n  \"key\": \"new\"\n } ");
  CHECK(edited("{\"a\": 1}") == "{\"a\": 1,\n  \"key\": \"new\"}");
  CHECK(edited("{\n  \"a\": 12 \n}\n") == "{\n  \"a\": 12,\n  \"key\": \"new\" \n}\n");
  CHECK(edited(R"({"a": {"key": 1}})") == "{\"a\": {\"key\": 1},\n  \"key\": \"new\"}");
}

TEST_CASE("json edit: what was written reads back as it was meant") {
  const Json value = JsonArray{JsonObject{{"name", "d"}, {"template", "{{ \"\\\n\t☃\" }}"}}};
  for (const char* text :
       {"{}", R"({"key": 1})", R"({"a": [[], {}], "key": "{", "b": "}"})", R"({"a": -1.5e3})"}) {
    const Json before = parse_json(text, "before");
    const Json after = parse_json(edited(text, value), "after");
    CHECK(after.find("key")->dump() == value.dump());
    for (const auto& [name, member] : before.as_object()) {
      if (name != "key") CHECK(after.find(name)->dump() == member.dump());
    }
  }
  for (const char* text : {"", "[]", "5", "{\"a\": }", "{\"a\": 1"}) {
    CHECK(raised_by([&] { edited(text); }).code == ExitCode::input);
  }
}
