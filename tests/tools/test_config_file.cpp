#include "options/config_file.h"

#include <catch2/catch_test_macros.hpp>

#include "support/raises.h"

using namespace hearth;
using test::raised_by;

TEST_CASE("entries with their lines") {
  const auto entries = parse_config_yaml(
      "# comment\nlr: 1e-5\n\ndata:\n  - a.jsonl\n  - 'b c'\nsteps: ~\nempty: []\nquoted: "
      "\"null\"\n",
      "c.yaml");
  REQUIRE(entries.size() == 5);
  CHECK(entries[0].key == "lr");
  CHECK(entries[0].values == std::vector<std::string>{"1e-5"});
  CHECK(entries[0].line == 2);
  CHECK(entries[1].values == std::vector<std::string>{"a.jsonl", "b c"});
  CHECK(entries[1].line == 4);
  CHECK(entries[2].is_null);
  CHECK(entries[3].values.empty());
  CHECK_FALSE(entries[3].is_null);
  CHECK(entries[4].values == std::vector<std::string>{"null"});
  CHECK(parse_config_yaml("", "c.yaml").empty());
  CHECK(parse_config_yaml("{\"lr\": 1, \"data\": [\"a\"]}", "c.json").size() == 2);
}

TEST_CASE("maps below a key, as other trainers write them") {
  const auto entries = parse_config_yaml(
      "datasets:\n  - path: a.jsonl\n    type: x\n    roles: [b, c]\n  - path: d\n    deep: {e: "
      "[1]}\n"
      "one: {f: ~}\nplain: 1\nlists: [[1], 2]\n",
      "c.yaml");
  REQUIRE(entries.size() == 4);
  REQUIRE(entries[0].maps.size() == 2);
  CHECK(entries[0].maps[0].size() == 3);
  CHECK(entries[0].maps[0][0].values == std::vector<std::string>{"a.jsonl"});
  CHECK(entries[0].maps[0][1].line == 3);
  CHECK(entries[0].maps[0][2].values == std::vector<std::string>{"b", "c"});
  REQUIRE(entries[0].maps[1].size() == 2);
  CHECK(entries[0].maps[1][1].key == "deep");
  REQUIRE(entries[0].maps[1][1].maps.size() == 1);
  CHECK(entries[0].maps[1][1].maps[0][0].key == "e");
  CHECK(entries[0].maps[1][1].maps[0][0].values == std::vector<std::string>{"1"});
  CHECK(entries[1].maps[0][0].is_null);
  CHECK(entries[2].values == std::vector<std::string>{"1"});
  CHECK(entries[2].maps.empty());
  CHECK(entries[3].nested);
  CHECK(entries[3].values == std::vector<std::string>{"2"});
}

TEST_CASE("what is no map of values is refused with its line") {
  const auto refused = [](const std::string& text, const std::string& part) {
    const auto e = raised_by([&] { parse_config_yaml(text, "c.yaml"); });
    INFO(text << " -> " << e.message);
    return e.code == ExitCode::input && e.message.starts_with("c.yaml") && e.says(part);
  };
  CHECK(refused("lr: 1\nlr: 2\n", "c.yaml:2: 'lr' stands there twice"));
  CHECK(refused("lr: [1\n", "c.yaml:1"));
  CHECK(refused("a: 'x\n", "bad YAML"));
  CHECK(refused("a: {b: 1, b: 2}\n", "'b' stands there twice"));
  CHECK(refused("a:\n  - b: 1\n    c: {d: 1, d: 1}\n", "c.yaml:3: 'd' stands there twice"));
  CHECK(refused("? {a: 1}\n: 1\n", "found a map"));
  CHECK(refused("a: [1, ~]\n", "found null"));
  CHECK(refused("a: " + std::string(20, '[') + std::string(20, ']'), "16 levels"));
  CHECK(refused("- a\n", "a list can only be"));
  CHECK(refused("just text\n", "name: value"));
  CHECK(refused("a: &x 1\n", "anchors"));
  CHECK(refused("a: 1\nb: *a\n", "c.yaml:2"));
  CHECK(refused("a: 1\n---\nb: 1\n", "second"));
  CHECK(refused("? [a]\n: 1\n", "a list can only be"));
  CHECK(refused("~: 1\n", "found null"));
  CHECK(refused(std::string("a: \0", 4), "zero bytes"));
  CHECK(refused("a: \xff\n", "UTF-8"));
  CHECK(refused(std::string(100000, '['), "c.yaml"));
  CHECK(refused("a: " + std::string(100000, '{'), "c.yaml"));
}
