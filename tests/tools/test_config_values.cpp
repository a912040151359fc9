// Values of a configuration file that say less, or more, than they seem to.
#include <catch2/catch_test_macros.hpp>

#include "base/counted.h"
#include "base/numbers.h"
#include "base/one_line.h"
#include "record/run_directory.h"
#include "tools/command_line_fixture.h"
#include "tools/foreign_fixture.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kNeeded = "model: m\ndata: d\nout: o\n";

}  // namespace

TEST_CASE("a list where one value belongs is refused, of one value, too") {
  for (const char* line : {"seed: [1]", "lr: [1, 2]", "epochs: [3]", "shuffle: [on]",
                           "num_train_epochs: [3]", "packing: [true]"}) {
    INFO(line);
    const auto problems = problems_of(kNeeded + std::string(line) + "\n");
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].find("c.yaml:4: ") != std::string::npos);
    CHECK(problems[0].find("expected one value, found a list") != std::string::npos);
  }
  CHECK(problems_of("model: m\ndata: [d]\nout: o\nseed: 1\n").empty());
}

TEST_CASE("a null in a list is a problem, reported with the others") {
  const auto problems = problems_of(kNeeded + std::string("lr: [~]\nfreeze: [null]\nseed: [1]\n"));
  REQUIRE(problems.size() == 3);
  CHECK(problems[0].find("c.yaml:4: lr: expected values in the list, found null") !=
        std::string::npos);
  CHECK(problems[1].find("c.yaml:5: freeze") != std::string::npos);
}

TEST_CASE("null is told to be not given, but for options whose default it is") {
  const CommandLine line =
      parsed_yaml(kNeeded + std::string("lr: null\nseed: ~\nrouter-aux-loss: null\nsteps:\n"));
  CHECK(one_says(line.details, "c.yaml:4: lr: null: not given"));
  CHECK(one_says(line.details, "c.yaml:5: seed: null: not given"));
  CHECK_FALSE(one_says(line.details, "router-aux-loss"));
  CHECK(line.options.lr == Options().lr);
  // So are keys of other trainers, whatever they stand for.
  const CommandLine foreign = parsed_yaml(
      kNeeded +
      std::string("max_steps: null\nrouter_aux_loss:\nwandb_project: ~\nuse_peft: null\n"));
  CHECK(one_says(foreign.details, "c.yaml:4: max_steps: null: not given"));
  CHECK(one_says(foreign.details, "c.yaml:6: wandb_project: null: not given"));
  CHECK(one_says(foreign.details, "c.yaml:7: use_peft: null: not given"));
  CHECK_FALSE(one_says(foreign.details, "router_aux_loss"));  // an own option without a value
  // What a run records reads back without a word.
  const CommandLine again = parsed_yaml(config_yaml(line.options.recorded));
  CHECK(again.details.empty());
}

TEST_CASE("--allow-change is of one start: config.yaml does not hold it") {
  const CommandLine line = parse_command_line(train_with({"--allow-change", "steps,lr"}));
  CHECK(config_yaml(line.options.recorded).find("allow-change") == std::string::npos);
  CHECK(parsed_yaml(kNeeded + std::string("allow-change: [steps]\n")).options.allow_change ==
        std::vector<std::string>{"steps"});
}

TEST_CASE("anchors, aliases and merge keys as other trainers' files have them") {
  const CommandLine line =
      parsed_yaml("model: &m base\ndata: d\nout: *m\n<<: {lr: 1e-4, seed: 3}\nseed: 5\n");
  CHECK(line.options.out == "base");
  CHECK(line.options.lr == 1e-4);
  CHECK(line.options.seed == 5);
}

TEST_CASE("sizes have units up to T, with a B if one likes") {
  CHECK(parse_size("1T") == 1'000'000'000'000);
  CHECK(parse_size("1Ti") == uint64_t{1} << 40);
  CHECK(parse_size("64GB") == 64'000'000'000);
  CHECK(parse_size("64GiB") == uint64_t{64} << 30);
  CHECK(parse_size("1.5TiB") == uint64_t{3} << 39);
  CHECK(parse_size("7kB") == 7000);
  CHECK(parse_size("12B") == 12);
  for (const char* text : {"B", "1BB", "GB", "1 GB", "1GBi", "1KB", "9e9T"}) {
    INFO(text);
    CHECK_FALSE(parse_size(text));
  }
}

TEST_CASE("counts agree with their nouns, and breaks are seen") {
  CHECK(counted(1, "row") == "1 row");
  CHECK(counted(0, "row") == "0 rows");
  CHECK(counted(21, "row") == "21 rows");
  CHECK(counted("0.25", "step") == "0.25 steps");
  CHECK(with_visible_breaks("a\nb\r\n\tc") == "a\\nb\\r\\n\\tc");
}
