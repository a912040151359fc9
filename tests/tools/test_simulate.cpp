// hearth simulate routing as a user calls it.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "base/json.h"
#include "support/program.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Approx;

namespace {

ProgramResult simulate(std::vector<std::string> words) {
  words.insert(words.begin(), {"simulate", "routing"});
  return run_program(HEARTH_BINARY, words);
}

}  // namespace

TEST_CASE("simulate: the same numbers as ever") {
  const ProgramResult told = simulate(
      {"--experts", "8", "--top-k", "2", "--skew", "0.2", "--tokens", "1000", "--layers", "2",
       "--steps", "3", "--persistence", "0.75", "--seed", "7", "--token-hit", "0.85", "--json"});
  CHECK(told.exit_code == 0);
  CHECK(told.err == "");
  CHECK(told.out == read_file(std::string(HEARTH_TEST_DATA) + "/routing/small.json"));
}

TEST_CASE("simulate: the document has what it says") {
  const ProgramResult told =
      simulate({"--experts=64", "--top-k=8", "--skew=0.05", "--tokens=65536", "--layers=3",
                "--steps=6", "--persistence=0.73", "--seed=1", "--json"});
  REQUIRE(told.exit_code == 0);
  const Json document = parse_json(told.out, "stdout");
  const Json& routing = *document.find("routing");
  CHECK(routing.find("skew")->as_double() == 0.05);
  CHECK(routing.find("g_all")->as_double() <= 0.125);
  CHECK(routing.find("persistence")->as_double() == Approx(.73).margin(.01));
  CHECK(routing.find("predicted") == nullptr);
  const JsonArray& steps = routing.find("counts")->as_array();
  REQUIRE(steps.size() == 6);
  double skew = 0;
  for (const Json& step : steps) {
    REQUIRE(step.as_array().size() == 3);
    for (const Json& layer : step.as_array()) {
      REQUIRE(layer.as_array().size() == 64);
      double sum = 0, squares = 0;
      for (const Json& n : layer.as_array()) {
        sum += n.as_double();
        squares += n.as_double() * n.as_double();
      }
      CHECK(sum == 65536);
      skew += squares / sum / sum / 18;
    }
  }
  CHECK(routing.find("g")->as_double() == Approx(skew).epsilon(1e-12));
  CHECK(skew == Approx(.05).epsilon(.02));
}

TEST_CASE("simulate: tables and a trace") {
  const TemporaryDirectory directory;
  const ProgramResult told = simulate({"--experts", "32", "--skew", "0.1", "--steps", "2",
                                       "--trace", directory / "t.json", "--verbose"});
  REQUIRE(told.exit_code == 0);
  for (const char* line : {"\nskew G of first choices        0.1000", "\npersistence  ",
                           "\n  rank  first choices", "\nstep 2 layer 0: "}) {
    INFO(line << told.out);
    CHECK(told.out.find(line) != std::string::npos);
  }
  const Json trace = parse_json(read_file(directory / "t.json"), "t.json");
  REQUIRE(trace.find("traceEvents")->as_array().size() == 2);
  const Json& event = trace.find("traceEvents")->as_array()[1];
  CHECK(event.find("ts")->as_int() == 1000);
  double tokens = 0;
  for (const auto& [expert, n] : event.find("args")->as_object()) tokens += n.as_double();
  CHECK(tokens == 8192);
}

TEST_CASE("simulate: what cannot be is refused by name") {
  const auto refused = [](const std::vector<std::string>& words, const std::string& line) {
    const ProgramResult told = simulate(words);
    INFO(told.err);
    CHECK(told.exit_code == 2);
    CHECK(told.out == "");
    CHECK(told.err.find(line) != std::string::npos);
  };
  refused({"--experts", "8", "--skew", "0.1"}, "--skew 0.1: expected at least 1/E, 0.125");
  refused({"--experts", "8", "--skew", "1.01"}, "--skew: expected");
  refused({"--experts", "8", "--skew", "0"}, "--skew: expected");
  CHECK(simulate({"--experts", "8", "--skew", "0"}).err.find("missing") == std::string::npos);
  refused({"--experts", "8", "--skew", "nan"}, "--skew: expected");
  refused({"--experts", "8"}, "--skew is missing");
  refused({"--skew", "0.3"}, "--experts is missing");
  refused({"--experts", "8", "--skew", "0.3", "--top-k", "9"}, "--top-k 9: expected at most");
  refused({"--experts", "8", "--skew", "0.3", "--persistence", "1.1"}, "--persistence: expected");
  refused({"--experts", "64", "--skew", "0.02", "--tokens", "10"},
          "--tokens 10: too few for --skew 0.02: ");
  // Fewer tokens would do as well here, but the line says that these are too few.
  refused({"--experts", "128", "--skew", "0.029151914243579706", "--tokens", "100"},
          "the nearest that they can have is 0.029800; 128 would do");
  refused({"--experts", "4096", "--skew", "0.3", "--layers", "65536"},
          "--layers 65536: expected at most 4096 with --experts 4096");
  refused({"--experts", "4096", "--skew", "0.3", "--layers", "4", "--steps", "1025"},
          "--steps 1025: expected at most 1024 with these --layers and --experts");
  // What is wrong with the study is all that is told: no option of it counts.
  const auto study = [](std::vector<std::string> words, const std::string& problem) {
    words.insert(words.begin(), "simulate");
    const ProgramResult told = run_program(HEARTH_BINARY, words);
    INFO(told.err);
    CHECK(told.exit_code == 2);
    CHECK(told.err == "hearth: " + problem + ": hearth simulate routing --experts E --skew G\n");
  };
  study({}, "expected a study");
  study({"rooting", "--tokens", "0"}, "expected routing, found 'rooting'");
  for (const char* later : {"step", "figure"}) {
    study({later, "--shape", "S-8", "--gpus", "4", "--json"},
          "'simulate " + std::string(later) + "' is not in this version, which has routing");
  }
  // The ends of the range are in it.
  CHECK(simulate({"--experts", "8", "--skew", "0.125", "--json"}).exit_code == 0);
  CHECK(simulate({"--experts", "8", "--skew", "1", "--json"}).exit_code == 0);
}
