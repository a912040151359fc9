// What saved states say of decisions about experts: read as it was written, or refused.
#include <catch2/catch_test_macros.hpp>

#include "support/raises.h"
#include "train/decided_past.h"

namespace hearth::test {
namespace {

ModelSpec spec_of_past() {
  ModelSpec spec;
  spec.layers = 3;
  spec.experts = 4;
  return spec;
}

const std::vector<std::string> kPastNames = {"host", "virtual:0", "virtual:1"};

TEST_CASE("decided past: read as it was written, without devices that are not there") {
  const std::vector<DecidedPast> past = {
      {2, {{2, 3}, {0, 1}}, {{0, {3, 1}}, {2, {}}}, {{0, {7, 0, 1, 0}}}}, {1, {}, {}}};
  const Json saved = to_json(past, kPastNames);
  const std::vector<DecidedPast> read = decided_past(saved, kPastNames, spec_of_past(), "m");
  REQUIRE(read.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(read[i].device == past[i].device);
    CHECK(read[i].loaded == past[i].loaded);
    CHECK(read[i].given == past[i].given);
    CHECK(read[i].tokens == past[i].tokens);
  }
  const std::vector<DecidedPast> here =
      decided_past(saved, {"host", "virtual:1"}, spec_of_past(), "m");
  REQUIRE(here.size() == 1);
  CHECK(here[0].device == 1);
  CHECK(here[0].loaded == past[0].loaded);
}

TEST_CASE("decided past: states of earlier versions have no tokens") {
  const Json saved = parse_json(R"([{"device": "virtual:0", "loaded": [], "given": []}])", "t");
  const std::vector<DecidedPast> read = decided_past(saved, kPastNames, spec_of_past(), "m");
  REQUIRE(read.size() == 1);
  CHECK(read[0].tokens.empty());
}

TEST_CASE("decided past: what no run has written is a damaged state") {
  for (
      const char* text : {
          R"({})",
          R"([{"loaded": [], "given": []}])",
          R"([{"device": 1, "loaded": [], "given": []}])",
          R"([{"device": "virtual:0", "given": []}])",
          R"([{"device": "virtual:0", "loaded": [[0]], "given": []}])",
          R"([{"device": "virtual:0", "loaded": [[3, 0]], "given": []}])",
          R"([{"device": "virtual:0", "loaded": [[0, 4]], "given": []}])",
          R"([{"device": "virtual:0", "loaded": [[-1, 0]], "given": []}])",
          R"([{"device": "virtual:0", "loaded": [], "given": [[0, 1]]}])",
          R"([{"device": "virtual:0", "loaded": [], "given": [[0, [4]]]}])",
          R"([{"device": "virtual:0", "loaded": [], "given": [], "tokens": [[0, [1, 2, 3]]]}])",
          R"([{"device": "virtual:0", "loaded": [], "given": [], "tokens": [[0, [1, 2, 3, -1]]]}])",
          R"([{"device": "virtual:0", "loaded": [], "given": [], "tokens": [[0, [1, 2, 3, 0.5]]]}])",
          R"([{"device": "virtual:0", "loaded": [], "given": [], "tokens": [[3, [1, 2, 3, 0]]]}])",
          R"([{"device": "cuda:7", "loaded": 1, "given": []}])",
      }) {
    INFO(text);
    const Raised refused = raised_by(
        [&] { decided_past(parse_json(text, "t"), kPastNames, spec_of_past(), "state/m.json"); });
    CHECK(refused.code == ExitCode::storage);
    CHECK(refused.says("state/m.json: decisions:"));
  }
}

}  // namespace
}  // namespace hearth::test
