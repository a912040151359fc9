// What does not fit: the smallest change that does, and the line that names it.
#include <catch2/catch_test_macros.hpp>

#include "base/glob.h"
#include "base/sanitized.h"
#include "base/system.h"
#include "budget/needed_memory.h"
#include "budget/placed_model.h"
#include "budget/plan_changes.h"
#include "support/spelled_as_flags.h"
#include "train/training_data.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

// Subjects with a process of a fixed size, so that no measurement moves what fits.
struct FixedSubject {
  TrainingFixture f;
  TrainConfig config = f.config("x");
  PlacedModel model =
      place_model(trained_model(open_model(config), config), training_request(config, nullptr));
  PlanRequest request;

  FixedSubject() {
    config.seq_len = 8192;
    config.micro_batch = 8;
    config.grad_accum = 2;
    request.training = true;
    request.micro_batches = 2;
    request.longest = 8192;
    request.tokens = 8 * 8192;
  }
  PlanSubject with(uint64_t budget) const {
    PlanSubject subject = subject_of(model);
    subject.process = {uint64_t{20} << 20, 0, 0};
    subject.opening_bytes = 0;
    subject.host_budget().bytes = budget;
    return subject;
  }
};

TEST_CASE("plan: what was planned as P fits a budget of P, and a program a little larger") {
  const FixedSubject s;
  const Plan plan = make_plan(s.with(uint64_t{1} << 40), s.request);
  PlanSubject same = s.with(plan.host().peak);
  CHECK(make_plan(same, s.request).fits());
  CHECK(make_plan(same, s.request).train->group == plan.train->group);
  same.process.program += uint64_t{384} << 10;  // as starts differ
  const Plan larger = make_plan(same, s.request);
  CHECK(larger.fits());
  CHECK(larger.train->group == plan.train->group);
  const uint64_t needed = needed_memory(same, s.request)[kHostPlace];
  CHECK(needed < plan.host().peak);
  same.host_budget().bytes = needed;
  CHECK(make_plan(same, s.request).fits());
  same.host_budget().bytes = needed - (4 << 20);
  CHECK_FALSE(make_plan(same, s.request).fits());
}

TEST_CASE("plan: the smallest change that fits is named, and fits") {
  const SpelledAsFlags flags;
  FixedSubject s;
  const uint64_t needed = needed_memory(s.with(0), s.request)[kHostPlace];
  const auto change = [&](uint64_t budget) {
    const auto found = changes_that_fit(s.model.opened, s.with(budget), s.request, s.config);
    return found.empty() ? std::string("none") : found.front().options;
  };
  // Fewer sequences in a micro-batch: the same tokens a step.
  CHECK(change(needed - (8 << 20)) == "--micro-batch 4 --grad-accum 4");
  // Somewhere above the parameters alone sequences are cut, and at last nothing helps.
  PlanRequest one = s.request;
  one.micro_batches = 16;
  one.tokens = 8192;
  const std::string shorter = change(needed_memory(s.with(0), one)[kHostPlace] - (2 << 20));
  INFO(shorter);
  CHECK(shorter.find("--seq-len") != std::string::npos);
  CHECK(change(uint64_t{20} << 20) == "none");
  // Recompute comes first where it was refused.
  s.request.recompute = false;
  const uint64_t kept = needed_memory(s.with(0), s.request)[kHostPlace];
  CHECK(kept > needed);
  CHECK(change(kept - (6 << 20)) == "--recompute blocks");
}

TEST_CASE("plan: a change is named whenever all of them together fit") {
  const SpelledAsFlags flags;
  FixedSubject s;
  s.request.recompute = false;
  const auto change = [&](uint64_t budget) {
    const auto found = changes_that_fit(s.model.opened, s.with(budget), s.request, s.config);
    return found.empty() ? std::string("none") : found.front().options;
  };
  ParameterTable attention = s.model.table;
  for (Tensor& t : attention.tensors()) t.trainable = glob_matches("*.self_attn.*", t.name);
  const PlanSubject given = s.with(0);
  PlanSubject least = given.with_table(attention);
  least.opening_bytes = 0;
  PlanRequest smallest = s.request;
  smallest.micro_batches = 16;
  smallest.tokens = smallest.longest = 1;
  smallest.recompute = true;
  const uint64_t floor =
      needed_memory(least, smallest)[kHostPlace] + (uint64_t{4} << 20);  // what stays free
  const std::string together = change(floor + (64 << 10));
  INFO(together);
  for (const char* part : {"--recompute blocks", "--micro-batch 1 --grad-accum 16", "--seq-len ",
                           "--trainable '*.self_attn.*'"}) {
    CHECK(together.find(part) != std::string::npos);
  }
  if (kSanitized) return;
  CHECK(change(floor - (512 << 10)) == "none");
}

TEST_CASE("plan: a refusal is one line that names what runs, and a run with it runs") {
  const SpelledAsFlags flags;
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.data = {f.dir / "long.jsonl"};
  config.seq_len = 256;
  config.micro_batch = 128;
  config.grad_accum = 1;
  config.steps = 1;
  std::string ids;
  for (int i = 0; i < 256; ++i) ids += (i ? "," : "") + std::to_string(i % 250);
  std::string rows;
  for (int i = 0; i < 128; ++i) rows += "{\"input_ids\":[" + ids + "]}\n";
  TrainingFixture::write(f.dir / "long.jsonl", rows);
  config.recompute = Recompute::none;
  config.cpu_memory = 1;
  const auto needed = static_cast<uint64_t>(plan_of(config).json.find("needed_bytes")->as_int());
  config.cpu_memory = needed - (uint64_t{12} << 20);
  if (peak_resident_bytes() > config.cpu_memory) SKIP("what ran before in this process was larger");
  if (kSanitized) SKIP("a sanitizer keeps freed memory, more than the plans differ by");
  const PlanReport report = plan_of(config);
  REQUIRE_FALSE(report.fits);
  CHECK(report.json.find("fits")->as_bool() == false);
  INFO(report.refusal);
  CHECK(report.refusal.find('\n') == std::string::npos);
  REQUIRE(report.refusal.find("--recompute blocks") != std::string::npos);
  CHECK(report.json.find("changes")->as_array()[0].find("options")->as_string() ==
        "--recompute blocks");
  CHECK(raised_by([&] { f.run(config); }).code == ExitCode::usage);
  CHECK(file_info(f.dir / "run/model").kind == FileKind::none);
  config.recompute = Recompute::blocks;
  CHECK(f.run(config) == ExitCode::done);
}

TEST_CASE("plan changes: millions of micro-batches are no advice") {
  TrainingFixture f;
  TrainConfig config = f.config("unused");
  config.data.clear();
  config.micro_batch = 1 << 20;
  config.packing = false;
  const PlanReport report = plan_of(config);
  CHECK_FALSE(report.fits);
  CHECK(report.refusal.find("B of host memory") != std::string::npos);
}

}  // namespace
}  // namespace hearth::test
