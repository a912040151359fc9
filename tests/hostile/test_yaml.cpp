// Configuration files of `train`.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "hostile/hostile.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kYamlFile = "run.yaml";

Case yaml(const std::string& name, const std::string& text, std::vector<std::string> says,
          int code = 3) {
  says.push_back("run.yaml");
  return {name, [=](const Place& p) { p.write(kYamlFile, p.read(kYamlFile) + text); }, says, code};
}

Case whole(const std::string& name, const std::string& text, std::vector<std::string> says = {}) {
  says.push_back("run.yaml");
  return {name, [=](const Place& p) { p.write(kYamlFile, text); }, says};
}

}  // namespace

TEST_CASE("hostile: YAML") {
  std::string laughs = "a: &a [x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    laughs += std::string(1, c) + ": &" + c + " [*" + static_cast<char>(c - 1) + ", *" +
              static_cast<char>(c - 1) + "]\n";
  }
  std::string many;
  for (int i = 0; i < 5'000; ++i) many += "k" + std::to_string(i) + ": 1\n";
  run_table("YAML",
            {
                yaml("a comment is fine", "# more\nseed: 7\n", {}, 0),
                yaml("an anchor and an alias", "seed: &a 7\nlog-every: *a\n", {}, 0),
                yaml("an alias", "seed: *a\n", {}),
                whole("a billion laughs", laughs, {"run.yaml:", "aliases"}),
                yaml("a merge key", "<<: {seed: 7}\n", {}, 0),
                yaml("a merge of no map", "<<: 7\n", {"run.yaml:6", "'<<'"}),
                yaml("an alias in itself", "data-more: &a [*a]\n", {"run.yaml:6", "alias"}),
                yaml("a tag", "seed: !!python/object/apply:os.system [\"id\"]\n", {"run.yaml:6"}),
                yaml("a tag of a number", "seed: !!int 7\n", {"run.yaml:6"}),
                yaml("a key twice", "seed: 1\nseed: 2\n", {"run.yaml:7", "seed"}),
                yaml("a key that is a list", "[seed]: 1\n", {"run.yaml:6"}),
                yaml("a key that is a map", "{seed: 1}: 1\n", {"run.yaml:6"}),
                yaml("an empty key", ": 1\n", {}),
                yaml("a map inside", "seed:\n  value: 7\n", {"run.yaml:6"}, 2),
                yaml("a list inside a list", "data-more: [[1]]\n", {}, 2),
                yaml("a tab", "seed:\t7\n\tlr: 1\n", {}),
                yaml("a quote that is never closed", "model-x: \"abc\n", {}),
                yaml("a single quote that is never closed", "model-x: 'abc\n", {}),
                yaml("a bracket that is never closed", "seed: [7\n", {}),
                yaml("a brace that is never closed", "seed: {7\n", {}),
                yaml("an unknown escape", "seed: \"\\q\"\n", {"run.yaml:6"}),
                yaml("a second document", "---\nseed: 7\n", {}),
                yaml("a directive", "%YAML 9.9\n", {}),
                yaml("no UTF-8", "seed: \xff\n", {"UTF-8"}),
                yaml("a NUL byte", std::string("seed: \0\n", 8), {"zero bytes"}),
                yaml("an indent that goes back", "  seed: 7\n lr: 1\n", {}),
                yaml("10,000 brackets", "seed: " + std::string(10'000, '['), {}),
                yaml("120,000 brackets", "seed: " + std::string(120'000, '['), {}),
                yaml("10,000 braces", "seed: " + std::string(10'000, '{'), {}),
                yaml("10,000 dashes",
                     "seed: \n" +
                         [] {
                           std::string out;
                           for (int i = 0; i < 10'000; ++i) out += "- ";
                           return out;
                         }() +
                         "\n",
                     {}),
                yaml("10,000 question marks",
                     [] {
                       std::string out;
                       for (int i = 0; i < 10'000; ++i) out += "? ";
                       return out + "\n";
                     }(),
                     {}),
                whole("a list", "- model\n- data\n", {"run.yaml:1"}),
                whole("a word", "train\n", {"run.yaml:1"}),
                whole("10 MB", std::string(10'000'000, '#'), {"10000000"}),
                {"1 TB",
                 [](const Place& p) { p.sparse(kYamlFile, "a: ", uint64_t{1} << 40); },
                 {"run.yaml", "1099511627776"}},
            },
            {"plan", "--quiet", kYamlFile});
  run_table("YAML, kind", not_a_file(kYamlFile), {"plan", "--quiet", kYamlFile});
  run_table(
      "YAML, usage",
      {yaml("5,000 unknown keys", many, {"k0"}, 2),
       yaml("a key of 100,000 letters", std::string(100'000, 'k') + ": 1\n", {}),
       yaml("an unknown key of 1,000 letters", std::string(1000, 'k') + ": 1\n", {}, 2),
       yaml("a value of 100,000 letters", "seed: " + std::string(100'000, 'v') + "\n", {"seed"}, 2),
       yaml("a value that writes to the terminal", "seed: \"\\e[2J\\a\"\n", {"seed"}, 2),
       yaml("NaN", "lr: .nan\n", {"lr"}, 2), yaml("1e400", "lr: 1e400\n", {"lr"}, 2),
       yaml("2^64", "seed: 18446744073709551616\n", {"seed"}, 2),
       yaml("a list for a number", "lr: [1, 2]\n", {"lr"}, 2),
       yaml("a list of one for a number", "seed: [1]\n", {"run.yaml:6: seed", "a list"}, 2)},
      {"plan", "--quiet", kYamlFile});
}

TEST_CASE("hostile: a refusal leaves no run directory") {
  const Place place;
  place.write("model/config.json", "{");
  const Outcome outcome = run_in(place, {"train", "--quiet", "run.yaml"});
  CHECK(outcome.code == 3);
  CHECK_FALSE(std::filesystem::exists(place.path("run")));
}
