#include "options/config_file.h"

#include <catch2/catch_test_macros.hpp>
#include <map>

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
  CHECK(parse_config_yaml("a: [1, ~]\n", "c.yaml")[0].has_null);
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
  CHECK(refused("a: " + std::string(20, '[') + std::string(20, ']'), "16 levels"));
  CHECK(refused("- a\n", "a list can only be"));
  CHECK(refused("just text\n", "name: value"));
  CHECK(refused("a: &x [*x]\n", "c.yaml:1: an alias (*name) inside the value"));
  CHECK(refused("a: &x {b: [*x]}\n", "inside the value"));
  CHECK(refused("a: &x {b: 1}\n<<: [*x, 1]\n", "c.yaml:2: '<<' takes a map or a list of maps"));
  CHECK(refused("a: 1\n<<: 1\n", "'<<' takes a map"));
  CHECK(refused("a: &x [1]\n*x : 2\n", "a list can only be"));
  CHECK(refused("a: &x {b: 1}\nc:\n  *x : 2\n", "found a map"));
  CHECK(refused("a: &x b\nb: 1\n*x : 2\n", "c.yaml:3: 'b' stands there twice"));
  CHECK(refused("a: &x " + std::string(9, '[') + std::string(9, ']') +
                    "\nb: " + std::string(7, '[') + "*x" + std::string(7, ']') + "\n",
                "c.yaml:2: more than 16 levels"));
  CHECK(refused("a: 1\nb: *a\n", "c.yaml:2"));
  CHECK(refused("a: 1\n\"b\\N4\": 2\n", "c.yaml:2: the escapes \\N and \\_ are not read"));
  CHECK(refused("a: [1, \"\\_\"]\n", "write the character itself"));
  CHECK(refused("a: 1\nb: \"x\\0y\"\n", "c.yaml:2: a text with a zero byte"));
  CHECK(refused("a: 1\n---\nb: 1\n", "second"));
  CHECK(refused("? [a]\n: 1\n", "a list can only be"));
  CHECK(refused("~: 1\n", "found null"));
  CHECK(refused(std::string("a: \0", 4), "zero bytes"));
  CHECK(refused("a: \xff\n", "UTF-8"));
  CHECK(refused(std::string(100000, '['), "c.yaml"));
  CHECK(refused("a: " + std::string(100000, '{'), "c.yaml"));
}

TEST_CASE("aliases and merge keys are what they stand for") {
  const auto entries = parse_config_yaml(
      "lr: &rate 1e-5\nmin: *rate\nfiles: &files [a, b]\ndata: *files\nmore: [*rate, c]\n"
      "name: &n steps\n*n : 5\n\"<<\": 1\n",
      "c.yaml");
  REQUIRE(entries.size() == 8);
  CHECK(entries[1].values == std::vector<std::string>{"1e-5"});
  CHECK(entries[1].line == 2);
  CHECK(entries[3].values == std::vector<std::string>{"a", "b"});
  CHECK(entries[3].is_list);
  CHECK(entries[4].values == std::vector<std::string>{"1e-5", "c"});
  CHECK(entries[6].key == "steps");
  CHECK(entries[7].key == "<<");  // quoted, it is a name like others

  const auto merged = parse_config_yaml(
      "base: &base {a: 1, b: 2}\nother: &other\n  b: 3\n  c: 4\nsets:\n  - <<: *base\n    b: 5\n"
      "  - <<: [*base, *other]\n  - b: 6\n    <<: {<<: *other, c: 7}\n",
      "c.yaml");
  REQUIRE(merged.size() == 3);
  const auto texts = [&](size_t i) {
    std::map<std::string, std::string> found;
    for (const ConfigEntry& entry : merged[2].maps[i]) found[entry.key] = entry.values.at(0);
    return found;
  };
  using Texts = std::map<std::string, std::string>;
  CHECK(texts(0) == Texts{{"a", "1"}, {"b", "5"}});
  CHECK(texts(1) == Texts{{"a", "1"}, {"b", "2"}, {"c", "4"}});
  CHECK(texts(2) == Texts{{"b", "6"}, {"c", "7"}});
  const auto top = parse_config_yaml("seed: 1\n<<: {lr: 2, seed: 3}\n", "c.yaml");
  REQUIRE(top.size() == 2);
  CHECK(top[0].values == std::vector<std::string>{"1"});
  CHECK(top[1].key == "lr");
  CHECK(top[1].line == 2);
}

TEST_CASE("aliases that multiply are refused before they are written out") {
  std::string laughs = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  std::string merges = "a: &a {k: 1}\n";
  for (char c = 'b'; c <= 'k'; ++c) {
    const std::string name(1, c), before(1, static_cast<char>(c - 1));
    std::string nine;
    for (int i = 0; i < 9; ++i) nine += (i == 0 ? "*" : ", *") + before;
    laughs += name + ": &" + name + " [" + nine + "]\n";
    merges += name + ": &" + name + " {<<: [" + nine + "]}\n";
  }
  for (const std::string& text :
       {laughs, merges, "a: &a '" + std::string(50'000, 'x') + "'\nb: [" + [] {
          std::string all;
          for (int i = 0; i < 20'000; ++i) all += "*a,";
          return all;
        }() + "]\n"}) {
    const auto e = raised_by([&] { parse_config_yaml(text, "c.yaml"); });
    CHECK(e.code == ExitCode::input);
    CHECK(e.says("with its aliases (*name) written out"));
  }
}
