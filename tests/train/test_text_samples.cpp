// Samples before and after training: what they are written behind, and that they change nothing.
#include <catch2/catch_test_macros.hpp>

#include "budget/plan_time.h"
#include "train/text_samples.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

std::vector<Json> samples_of(const TrainingFixture& f, const std::string& out) {
  std::vector<Json> samples;
  for (const std::string& line : f.lines(out + "/journal.jsonl")) {
    Json event = parse_json(line, "journal.jsonl");
    if (event.find("event")->as_string() == "sample") samples.push_back(std::move(event));
  }
  return samples;
}

TEST_CASE("samples: prompts end where training begins, or in the middle of a text") {
  TokenStore store;
  const int32_t no = kIgnoredLabel;
  const auto add = [&](std::vector<int32_t> ids, std::vector<int32_t> labels) {
    store.add(ids, labels);
  };
  add({1, 2, 3, 4}, {no, no, no, no});  // nothing is trained
  add({1, 2, 3, 4, 5}, {no, no, no, 4, 5});
  add({1, 2, 3, 4, 5, 6}, {no, 2, 3, 4, 5, 6});
  add({9}, {9});
  std::vector<int32_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  add(ids, ids);
  add({7, 8}, {7, 8});
  const auto prompts = sample_prompts(RowSet(store), 3);
  REQUIRE(prompts.size() == 3);
  CHECK(prompts[0] == std::vector<int32_t>{1, 2, 3});
  CHECK(prompts[1] == std::vector<int32_t>{1, 2, 3});
  REQUIRE(std::ssize(prompts[2]) == kMostPromptTokens);
  CHECK(prompts[2].back() == 499);
}

TEST_CASE("samples: before and after training, and no bit of it changes") {
  const AssumedRates quick;
  TrainingFixture f;
  for (const Method method : {Method::full, Method::lora}) {
    const std::string name = method == Method::full ? "full" : "lora";
    TrainConfig config = f.config(name);
    config.method = method;
    config.lora_rank = 4;
    REQUIRE(f.run(config) == ExitCode::done);
    config.out = f.dir / (name + "-samples");
    config.samples = 2;
    REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
    REQUIRE(f.run(config) == ExitCode::done);
    CHECK(f.root(name + "-samples") == f.root(name));
    CHECK(f.result(name + "-samples") == f.result(name));
    const std::vector<Json> samples = samples_of(f, name + "-samples");
    REQUIRE(samples.size() == 4);
    for (size_t i = 0; i < 2; ++i) {
      const Json &before = samples[i], &after = samples[i + 2];
      CHECK(before.find("when")->as_string() == "start");
      CHECK(before.find("step")->as_int() == 0);
      CHECK(after.find("when")->as_string() == "end");
      CHECK(after.find("step")->as_int() == 8);
      CHECK(before.find("prompt")->as_string() == after.find("prompt")->as_string());
      CHECK(before.find("text")->as_string() != after.find("text")->as_string());
    }
    CHECK(samples[1].find("prompt")->as_string().find("What is 0?") != std::string::npos);
  }
  CHECK(samples_of(f, "full").empty());
}

}  // namespace
}  // namespace hearth::test
