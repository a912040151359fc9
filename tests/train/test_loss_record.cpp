// Losses and gradient norms of a run, for the verdict.
#include "verdict/loss_record.h"

#include <catch2/catch_test_macros.hpp>

#include "support/raises.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

LossRecord record_of(const std::vector<double>& losses, double norm = 1) {
  LossRecord record;
  for (const double loss : losses) record.add(loss, norm);
  return record;
}

TEST_CASE("loss record: far above the first is twice and a nat") {
  CHECK_FALSE(LossRecord().rose_far());
  CHECK_FALSE(record_of({6.3, 6.2, 6.1}).rose_far());
  CHECK_FALSE(record_of({6.3, 9}).rose_far());     // less than twice
  CHECK_FALSE(record_of({0.05, 0.4}).rose_far());  // less than a nat
  CHECK(record_of({1.2, 1.1, 11}).rose_far());
  // One step of many is an accident of its rows.
  std::vector<double> losses(40, 1.0);
  losses.back() = 9;
  CHECK(record_of(losses).last() == 3);
  losses.back() = 4.5;
  CHECK_FALSE(record_of(losses).rose_far());
  for (size_t i = 36; i < 40; ++i) losses[i] = 4.5;
  CHECK(record_of(losses).rose_far());
}

TEST_CASE("loss record: half of the steps without a gradient") {
  LossRecord record = record_of({2, 2, 2});
  record.add(2, 0);
  record.add(2, 0);
  CHECK_FALSE(record.mostly_without_gradient());
  record.add(2, 0);
  CHECK(record.mostly_without_gradient());
  CHECK_FALSE(LossRecord().mostly_without_gradient());
}

TEST_CASE("loss record: through a manifest, and malformed") {
  std::vector<double> losses;
  for (int i = 0; i < 25; ++i) losses.push_back(3 + 0.1 * i);
  const LossRecord record = record_of(losses, 0);
  const Json json = record.to_json();
  LossRecord again;
  again.restore(&json, "m");
  CHECK(again.to_json().dump() == json.dump());
  CHECK(again.first() == record.first());
  CHECK(again.last() == record.last());
  CHECK(again.without_gradient() == 25);
  for (const char* member : {"steps", "without_gradient", "first", "last"}) {
    for (const Json& wrong : {Json("x"), Json(-1), Json(JsonArray{"1"}), Json(JsonArray{})}) {
      Json bad = json;
      bad[member] = wrong;
      INFO(bad.dump());
      CHECK(raised_by([&] { LossRecord().restore(&bad, "m"); }).code == ExitCode::storage);
    }
  }
}

TEST_CASE("loss record: a run that diverged has an alarm, also after a resume") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.steps = 12;
  config.lr = 1000;
  config.weight_decay = 0;
  config.warmup = 0;
  REQUIRE(f.run_until(config, 7) == ExitCode::stopped);
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  const std::string journal = read_file(f.dir / "run/journal.jsonl");
  CHECK(journal.find("\"verdict\": \"alarm\"") != std::string::npos);
  const bool by_norm = journal.find("the gradient norm was 0 in") != std::string::npos;
  const bool by_loss = journal.find("the training loss rose from") != std::string::npos;
  CHECK((by_norm || by_loss));
  if (by_norm) CHECK(journal.find(" of 12 steps\"") != std::string::npos);  // both starts count
}

}  // namespace
}  // namespace hearth::test
