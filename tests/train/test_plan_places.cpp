// Plans of runs with a device beside the host: memory by place, refusals that name the place.
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "base/size_text.h"
#include "budget/needed_memory.h"
#include "budget/peak_line.h"
#include "budget/placed_model.h"
#include "budget/plan_changes.h"
#include "budget/plan_fit.h"
#include "budget/plan_grade.h"
#include "budget/rank_memory.h"
#include "device/device_memory.h"
#include "support/has.h"
#include "support/spelled_as_flags.h"
#include "train/training_data.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

constexpr Place kFirstDevice = 1;
constexpr uint64_t kPlenty = uint64_t{1} << 40;

/// A run whose blocks, all or the experts, are on a device that the host does not reach.
struct Placed {
  TrainingFixture f;
  TrainConfig config = f.config("x");
  PlacedModel model =
      place_model(trained_model(open_model(config), config), training_request(config, nullptr));
  PlanRequest request;

  explicit Placed(bool everything) {
    request.training = true;
    request.micro_batches = config.grad_accum;
    request.longest = config.seq_len;
    request.tokens = config.seq_len * config.micro_batch;
    model.placement = {everything ? kFirstDevice : kHostPlace, kFirstDevice};
    place_blocks(model.table, model.opened->spec, model.placement);
  }
  PlanSubject with(uint64_t host, uint64_t device) const {
    PlanSubject subject = subject_of(model);
    subject.process = {uint64_t{20} << 20, 0, 0};
    subject.places.resize(1);
    subject.opening_bytes = 0;
    subject.host_budget().bytes = host;
    subject.places.push_back({{"cuda:0", device, "--gpu-memory {}"},
                              nullptr,
                              subject.places.front().ops,
                              SpaceKind::device,
                              false,
                              {{}}});
    subject.of_model.dense = {model.placement.dense(0)};
    subject.of_model.experts = model.placement.experts;
    return subject;
  }
};

uint64_t bytes_of(const PlaceLines& place, const std::string& name) {
  uint64_t bytes = 0;
  for (const MemoryLine& line : place.lines) bytes += line.name == name ? line.bytes : 0;
  return bytes;
}

TEST_CASE("plan places: a line lies at the place of what it is for") {
  const Placed p(false);
  const Plan plan = make_plan(p.with(kPlenty, kPlenty), p.request);
  REQUIRE(plan.places.size() == 2);
  const PlaceLines& device = plan.places[kFirstDevice];
  CHECK(device.budget.name == "cuda:0");
  uint64_t experts = 0, others = 0;
  for (const Tensor& t : p.model.table.tensors()) {
    const bool away = p.model.table.block(t.block).place == kFirstDevice;
    (away ? experts : others) += static_cast<uint64_t>(t.size()) * sizeof(float);
  }
  REQUIRE(experts > 0);
  for (const char* name : {"master weights", "gradients", "first moments", "second moments"}) {
    INFO(name);
    CHECK(bytes_of(device, name) >= experts);
    CHECK(bytes_of(device, name) <= experts + 256 * 1024);  // padding between tensors
    CHECK(bytes_of(plan.host(), name) >= others);
    CHECK(bytes_of(plan.host(), name) <= others + 256 * 1024);
  }
  for (const PlaceLines& place : plan.places) {
    uint64_t sum = 0;
    for (const MemoryLine& line : place.lines) sum += line.bytes;
    CHECK(sum == place.peak);
  }
  CHECK(bytes_of(plan.host(), "program and libraries") > 0);
  CHECK(bytes_of(device, "program and libraries") == 0);
  // Memory of the host that only such a device needs.
  CHECK(bytes_of(plan.host(), "staging of parameters of devices") == uint64_t{4} << 20);
  PlanSubject reached = p.with(kPlenty, kPlenty);
  reached.places[kFirstDevice].host_reaches = true;
  const Plan in_host = make_plan(reached, p.request);
  CHECK(bytes_of(in_host.host(), "staging of parameters of devices") == 0);
  // Memory of a device that is the host's is memory of the process.
  CHECK(bytes_of(plan.host(), "memory of cuda:0") == 0);
  CHECK(bytes_of(in_host.host(), "memory of cuda:0") == in_host.places[kFirstDevice].peak);
  CHECK(in_host.host().peak > in_host.places[kFirstDevice].peak);
}

TEST_CASE("plan places: lines add up where opening took more than the run takes") {
  const Placed p(false);
  PlanSubject subject = p.with(kPlenty, kPlenty);
  const uint64_t run = make_plan(subject, p.request).host().peak;
  subject.process.peak = run + 12345;
  const Plan plan = make_plan(subject, p.request);
  CHECK(plan.host().peak == run + 12345);
  CHECK(bytes_of(plan.host(), "before the run, at its peak") == 12345);
  uint64_t sum = 0;
  for (const MemoryLine& line : plan.host().lines) sum += line.bytes;
  CHECK(sum == plan.host().peak);
  subject.process.peak = run;
  CHECK(bytes_of(make_plan(subject, p.request).host(), "before the run, at its peak") == 0);
  // What the process reached is as it was, and so is the sum of the lines.
  MeasuredMemory measured;
  measured.peak = plan.host().peak;
  const PlaceLines host = graded(plan, measured).front();
  uint64_t found = 0;
  for (const MemoryLine& line : host.lines) found += line.measured.value_or(0);
  CHECK(found == host.measured_peak);
}

TEST_CASE("plan places: what a save and the result take is not added up") {
  const Placed p(false);
  const auto plan_of = [&](uint64_t opening) {
    PlanSubject subject = p.with(kPlenty, kPlenty);
    subject.opening_bytes = opening;
    return make_plan(subject, p.request);
  };
  const auto bytes = [](const Plan& plan, MemoryUse use) { return bytes_of(plan.host(), use); };
  const Plan small = plan_of(0);
  const uint64_t reading = bytes(small, MemoryUse::reading);
  REQUIRE(reading > 0);
  CHECK(bytes(small, MemoryUse::saving) == 0);  // of few tensors, in the memory of the buffers
  CHECK(bytes(small, MemoryUse::result) == 0);
  // Opening the written result has a buffer beside it; the buffers of reading are free by then.
  constexpr uint64_t kOpening = uint64_t{50} << 20;
  const Plan large = plan_of(kOpening);
  CHECK(reading + bytes(large, MemoryUse::result) == kOpening + Checkpoint::read_buffer_bytes(1));
  CHECK(large.host().peak == small.host().peak + bytes(large, MemoryUse::result));
  // Without training there is neither.
  PlanSubject subject = p.with(kPlenty, kPlenty);
  subject.opening_bytes = kOpening;
  PlanRequest eval;
  eval.eval_tokens = p.request.tokens;
  eval.longest = p.request.longest;
  CHECK(bytes(make_plan(subject, eval), MemoryUse::result) == 0);
}

TEST_CASE("plan places: other ranks of the process have ended when the result is written") {
  const Placed p(false);
  PlanSubject subject = p.with(kPlenty, kPlenty);
  subject.opening_bytes = uint64_t{200} << 20;
  PlanRequest request = p.request;
  const Plan alone = make_plan(subject, request);
  request.shards = RankShards{.shards = 2, .ranks = 2, .are_threads = true};
  request.micro_batches = 2;
  const Plan two = make_plan(subject, request);
  const uint64_t ranks = bytes_of(two.host(), MemoryUse::ranks);
  REQUIRE(ranks > 0);
  CHECK(bytes_of(two.host(), MemoryUse::result) + ranks ==
        bytes_of(alone.host(), MemoryUse::result));
  CHECK(bytes_of(two.host(), MemoryUse::tables) > bytes_of(alone.host(), MemoryUse::tables));
}

TEST_CASE(
    "plan places: thread ranks have the buffers of the one that reads most, each its staging") {
  const Placed p(false);
  PlanRequest request = p.request;
  request.shards = RankShards{.shards = 2, .ranks = 2, .are_threads = true};
  request.micro_batches = 2;
  PlanSubject with_virtual = p.with(kPlenty, kPlenty);
  with_virtual.places.back().host_reaches = true;
  Plan leader = make_plan(with_virtual, request);
  const Plan before = leader;
  request.shards.rank = 1;
  const Plan with_gpu = make_plan(p.with(kPlenty, kPlenty), request);
  const auto reading = [](const Plan& plan) { return bytes_of(plan.host(), MemoryUse::reading); };
  REQUIRE(reading(with_gpu) > reading(leader));
  share_reading(leader, with_gpu);
  CHECK(reading(leader) == reading(with_gpu));
  const auto theirs = memory_of_rank(with_gpu, false);
  CHECK(bytes_of(theirs[kHostPlace], MemoryUse::staging) == DeviceMemory::kPinnedBytes);
  CHECK(bytes_of(theirs[kHostPlace], MemoryUse::reading) == 0);
  share_reading(leader, before);  // less: nothing changes
  CHECK(reading(leader) == reading(with_gpu));
}

TEST_CASE("plan places: of paced places the program takes the same at every start") {
  // Pages of files, and others, of starts of one command.
  const auto bytes = [](uint64_t files_kib, uint64_t others_kib) {
    return repeatable_program_bytes({(files_kib + others_kib) << 10, 0, 0, true, files_kib << 10});
  };
  const uint64_t one = bytes(16944, 1708);
  CHECK(one == bytes(17176, 1708));
  CHECK(one == bytes(17928, 1712));
  CHECK(one >= (17928 + 1712) << 10);
  CHECK(one < (17928 + 1712 + 1024) << 10);
  CHECK(bytes(30000, 9000) >= 39000 << 10);
  CHECK(bytes(30000, 9000) < (39000 + 1024 + 512) << 10);
}

TEST_CASE("plan places: each place is held against its own budget") {
  const Placed p(false);
  const Plan plan = make_plan(p.with(kPlenty, kPlenty), p.request);
  CHECK(plan.fits());
  const uint64_t device = plan.places[kFirstDevice].peak;
  CHECK(make_plan(p.with(kPlenty, device), p.request).fits());
  const Plan small = make_plan(p.with(kPlenty, device / 2), p.request);
  CHECK(small.short_place() == kFirstDevice);
  const std::string missing = what_is_missing(small);
  INFO(missing);
  CHECK(has(missing, " MB of the memory of cuda:0, but may use only "));
  CHECK_FALSE(has(missing, "host memory"));
  const Plan both = make_plan(p.with(uint64_t{1} << 20, device / 2), p.request);
  CHECK(both.short_place() == kHostPlace);
  CHECK(has(what_is_missing(both), " MB of host memory, but may use only 1.049 MB; it needs "));
  CHECK(has(what_is_missing(both), "cuda:0"));
}

TEST_CASE("plan places: a refusal names the device, and the experts go to the host first") {
  const SpelledAsFlags flags;
  Placed p(true);
  p.request.recompute = true;
  p.config.micro_batch = 1;
  const uint64_t needed = needed_memory(p.with(kPlenty, kPlenty), p.request)[kFirstDevice];
  CHECK(make_plan(p.with(kPlenty, needed), p.request).fits());
  uint64_t experts = 0;
  const Placed apart(false);
  const CopyPolicy policy = make_plan(p.with(kPlenty, needed), p.request).policy;
  for (const ParameterArena& arena : parameter_arenas(apart.model.table, policy)) {
    if (arena.place == kFirstDevice) experts += arena.bytes;
  }
  const PlanSubject subject = p.with(kPlenty, needed - experts / 2);
  const Plan plan = make_plan(subject, p.request);
  REQUIRE(plan.short_place() == kFirstDevice);
  const std::string line =
      refusal(plan, {{"--devices cuda:0,host", 5 << 20}}, needed_memory(subject, p.request));
  INFO(line);
  CHECK(has(line, "memory of cuda:0"));
  CHECK(has(line, "the smallest change that fits: --devices cuda:0,host (5.243 MB)"));
  CHECK(has(line, "--gpu-memory " + size_option(needed) + ", if cuda:0 has it"));
  const uint64_t room = needed - experts / 2;
  const auto changes = changes_that_fit(p.model.opened, p.with(kPlenty, room), p.request, p.config);
  REQUIRE_FALSE(changes.empty());
  CHECK(changes.front().options == "--devices cuda:0,host");

  // What is advised can be given: a device keeps the keys that it had.
  p.config.devices = "virtual:mem=1G/cores=1";
  const auto keyed = changes_that_fit(p.model.opened, p.with(kPlenty, room), p.request, p.config);
  REQUIRE_FALSE(keyed.empty());
  CHECK(keyed.front().options == "--devices virtual:mem=1G/cores=1,host");
}

TEST_CASE("plan places: a refusal speaks of no larger budget where none was found") {
  const SpelledAsFlags flags;
  const Placed p(false);
  const PlanSubject subject = p.with(kPlenty, uint64_t{1} << 20);
  const Plan plan = make_plan(subject, p.request);
  REQUIRE_FALSE(plan.fits());
  std::vector<uint64_t> budgets;
  for (const ComputePlace& place : subject.places) budgets.push_back(place.budget.bytes);
  CHECK(options_that_fit(plan, budgets).empty());
  const std::string changed = refusal(plan, {{"--micro-batch 1", 5 << 20}}, budgets);
  CHECK(changed.ends_with("; the smallest change that fits: --micro-batch 1 (5.243 MB)"));
  const std::string nothing = refusal(plan, {}, budgets);
  CHECK(nothing.ends_with("; no smaller change fits, and no larger budget was found"));
}

TEST_CASE("plan places: a change may fill a device to the last byte, which the host keeps free") {
  const SpelledAsFlags flags;
  Placed p(true);
  p.request.recompute = true;
  p.config.micro_batch = 2;
  p.request.tokens = 2 * p.config.seq_len;
  PlanRequest half = p.request;
  half.tokens = p.config.seq_len;
  half.micro_batches = 2 * p.request.micro_batches;
  const uint64_t room = needed_memory(p.with(kPlenty, kPlenty), half)[kFirstDevice];
  const auto changes = changes_that_fit(p.model.opened, p.with(kPlenty, room), p.request, p.config);
  REQUIRE_FALSE(changes.empty());
  CHECK(changes.front().options.starts_with("--micro-batch 1 --grad-accum "));
}

TEST_CASE("plan places: what a run measured is told by place") {
  const Placed p(false);
  const Plan plan = make_plan(p.with(kPlenty, kPlenty), p.request);
  MeasuredMemory measured;
  measured.arenas.push_back({parameters_of(CopyRole::gradient), 700, kHostPlace});
  measured.arenas.push_back({parameters_of(CopyRole::gradient), 900, kFirstDevice});
  measured.arenas.push_back({parameters_of(CopyRole::master), 50, kFirstDevice});
  measured.peak = uint64_t{50} << 20;
  const std::vector<PlaceLines> found = graded(plan, measured);
  const auto gradients = [](const PlaceLines& place) {
    for (const MemoryLine& line : place.lines) {
      if (line.name == "gradients") return line.measured;
    }
    return std::optional<uint64_t>();
  };
  CHECK(gradients(found[kHostPlace]) == 700);
  CHECK(gradients(found[kFirstDevice]) == 900);
  CHECK(found[kHostPlace].measured_peak == measured.peak);
  CHECK(found[kFirstDevice].measured_peak == 950);
}

}  // namespace
}  // namespace hearth::test
