// Expert domains whose ranks keep the experts that they own, and fetch the others before each use: the
// bits of one rank, less memory, the layers that the plan chooses, and what travels.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <map>
#include <set>

#include "base/json.h"
#include "base/sanitized.h"
#include "budget/domain_choice.h"
#include "budget/fetched_layers.h"
#include "budget/peak_line.h"
#include "budget/plan_report.h"
#include "layers/fetched_experts.h"
#include "runtime/shared_parameters.h"
#include "train/faulty_rank.h"
#include "train/planned_run.h"
#include "train/ranks_fixture.h"

namespace hearth::test {
namespace {

const TrainedWith kFetchedBf16{"tied", {}, ComputeChoice::bf16};

class FetchedFixture : public RanksFixture {
 public:
  FetchedFixture() { set_mode("hybrid-ep"); }

  /// Four shards; all experts but those of the first layers are fetched.
  TrainConfig config_of(const TrainedWith& with, const std::string& out,
                        const std::vector<int32_t>& levels, const std::vector<int32_t>& domains,
                        int64_t kept) const {
    int64_t ranks = 1;
    for (const int32_t level : levels) ranks *= level;
    TrainConfig config = RanksFixture::config_of(with, out, 4, ranks);
    config.levels = levels;
    config.domains = domains;
    config.kept_layers = kept;
    return config;
  }

  void check_fetched(const TrainedWith& with, const std::vector<int32_t>& levels,
                     const std::vector<int32_t>& domains, int64_t kept) {
    const RunBits expected = bits_of(with, 4, 1);
    REQUIRE(expected.steps.size() == 3);
    INFO(text_of(with, {}) << " on " << levels.size() << " levels, kept " << kept);
    const TrainConfig config = config_of(with, "fetched", levels, domains, kept);
    CHECK(RanksFixture::bits_of(config) == expected);
    remove_tree(config.out);
  }
  /// A family with ten layers: "deep".
  void make_deep(const std::string& family, int64_t width = 8) const {
    Json config = parse_json(read_file(dir / (family + ".json")), family);
    config["num_hidden_layers"] = 10;
    config["moe_intermediate_size"] = width;
    write(dir / "deep.json", config.dump());
    init_checkpoint(dir / "deep.json", dir / "deep", 5, dir / "tokenizer");
  }
  using RanksFixture::bits_of;
};

struct PlannedFetch {
  explicit PlannedFetch(const TrainConfig& given)
      : config(given),
        run(given, open_model(given), reporter, Planning::sizes),
        json(plan_json(run.model, run.times, run.model.plan.places)) {}
  double volume(const char* key) const { return json.find("volumes")->find(key)->as_double(); }
  /// Of the process, all ranks, without the program, what tests before it reached, and what opening
  /// the model took, which is less where tests before it have freed memory.
  uint64_t own_bytes() const {
    PlacedModel model = run.model;
    model.process.program = model.process.peak = model.opening_bytes = 0;
    return sum_of(replanned(std::move(model), run.request).plan.places[kHostPlace].lines);
  }
  RecordingReporter reporter;
  TrainConfig config;
  PlannedRun run;
  Json json;
};

/// Why it is refused, with the plans of all ranks; empty: it is not.
std::string require_fits(const PlannedFetch& planned) {
  return raised_by([&] { require_run_fits(planned.run, planned.config); }).message;
}

size_t host_arena(const PlacedModel& model) {
  return model.plan.train->schedule.arena_bytes[kHostPlace];
}

}  // namespace

TEST_CASE("fetched experts: the bits of one rank\\, in every family") {
  FetchedFixture f;
  if (kSanitized) return f.check_fetched(kLora, {2, 2}, {1, 2}, 0);
  for (const TrainedWith& with :
       {kFull, kLora, kFetchedBf16, TrainedWith{"olmoe"}, TrainedWith{"mixtral", 0.2}}) {
    f.check_fetched(with, {2, 2}, {1, 2}, 0);
  }
  f.check_fetched(kFull, {4}, {4}, 0);
  f.check_fetched(kFull, {2}, {2}, 1);
  f.check_fetched(kLora, {4}, {2}, 1);
  f.check_fetched({"qwen3_moe", 0.2, ComputeChoice::bf16}, {4}, {4}, 0);
}

TEST_CASE("fetched experts: groups and recompute change no bit") {
  FetchedFixture f;
  for (const TrainedWith& with : {kFull, kLora}) {
    if (kSanitized && with.family == kFull.family) continue;
    TrainConfig one = f.RanksFixture::config_of(with, "one" + with.family, 4, 1);
    one.grad_accum = 8;
    const RunBits expected = f.bits_of(one);
    REQUIRE(expected.steps.size() == 3);
    for (const int64_t group : {1, 2}) {
      TrainConfig config = f.config_of(with, "shared", {4}, {2}, 0);
      config.grad_accum = 8;
      config.group = group;
      config.recompute = group == 1 ? Recompute::blocks : Recompute::none;
      INFO(with.family << " in groups of " << group);
      CHECK(f.bits_of(config) == expected);
      remove_tree(config.out);
    }
  }
}

TEST_CASE("fetched experts: at devices\\, through the hosts and directly") {
  FetchedFixture f;
  f.set_devices("virtual:mem=64M");
  for (const bool direct : {false, true}) {
    if (kSanitized && direct) continue;
    f.set_direct(direct);
    f.check_fetched(kFull, {2}, {2}, 0);
    f.check_fetched(kLora, {2, 2}, {2, 1}, 0);
  }
}

TEST_CASE("fetched experts: a run goes on with other layers and other domains") {
  FetchedFixture f;
  TrainConfig whole = f.RanksFixture::config_of(kFull, "whole", 4, 1);
  whole.steps = 4;
  REQUIRE(f.run(whole) == ExitCode::done);
  const auto part = [&](const std::vector<int32_t>& levels, const std::vector<int32_t>& domains,
                        int64_t kept) {
    TrainConfig config = f.config_of(kFull, "parts", levels, domains, kept);
    config.steps = whole.steps;
    return config;
  };
  REQUIRE(f.run_until(part({4}, {4}, 0), 1) == ExitCode::stopped);
  REQUIRE(f.run_until(part({2, 2}, {1, 2}, 9), 2) == ExitCode::stopped);
  REQUIRE(f.run_until(part({2}, {2}, 1), 3) == ExitCode::stopped);
  REQUIRE(f.run(part({4}, {2}, 0)) == ExitCode::done);
  CHECK(f.root("parts") == f.root("whole"));
  CHECK(f.result("parts") == f.result("whole"));
}

TEST_CASE("fetched experts: come before each use\\, those of two layers at one time") {
  FetchedFixture f;
  for (const bool recompute : {false, true}) {
    TrainConfig config = f.config_of(kFull, "planned", {4}, {4}, 0);
    config.recompute = recompute ? Recompute::blocks : Recompute::none;
    const PlannedFetch planned(config);
    const PlacedModel& model = planned.run.others.front();
    const Schedule& schedule = model.plan.train->schedule;
    std::set<int32_t> there;
    size_t fetches = 0, reads = 0, most = 0;
    for (TaskId t = 0; t < std::ssize(schedule.tasks); ++t) {
      const Task& task = schedule.tasks[static_cast<size_t>(t)];
      if (task.kind == TaskKind::fetch) {
        ++fetches;
        there.insert(task.layer);
      }
      if (task.kind == TaskKind::experts) {
        ++reads;
        CHECK(there.contains(task.layer));
        CHECK(std::ranges::any_of(task.uses, [](const BufferUse& use) {
          return use.port.value == Value::fetched_experts && use.port.access == Access::read;
        }));
      }
      const auto alive = std::ranges::count_if(schedule.buffers, [&](const Buffer& b) {
        return b.port.value == Value::fetched_experts && b.first <= t && t <= b.last;
      });
      most = std::max(most, static_cast<size_t>(alive));
    }
    CHECK(reads > 0);
    CHECK(most == 2);
    // Forward of each layer with experts, and backward of each but the last, which are still there.
    const auto layers = static_cast<size_t>(model.opened->spec.moe_layers());
    CHECK(fetches == 2 * layers - 1);
  }
}

TEST_CASE("fetched experts: take less memory\\, as planned and as measured") {
  FetchedFixture f;
  f.make_deep("qwen2_moe");
  for (const TrainedWith& with : {TrainedWith{"deep"}, TrainedWith{"deep", 0.2}}) {
    if (kSanitized && with.lora_dropout) continue;
    double before = 0;
    for (const int64_t kept : {10, 5, 0}) {
      const TrainConfig config = f.config_of(with, "run", {4}, {4}, kept);
      REQUIRE(f.run(config) == ExitCode::done);
      const Json plan = parse_json(read_file(f.dir / "run/plan.json"), "plan");
      const double bytes = other_hosts(plan, "peak_bytes"),
                   measured = other_hosts(plan, "measured_peak_bytes");
      INFO(text_of(with, {}) << ", kept " << kept << ": planned " << bytes << ", measured "
                             << measured);
      if (!kSanitized) CHECK(measured < bytes * 1.01);
      CHECK((before == 0 || bytes < before));
      before = bytes;
      remove_tree(config.out);
    }
  }
}

TEST_CASE("fetched experts: the plan keeps as many layers as fit") {
  if (kSanitized) SKIP("sanitizers make the process larger than the memory that is given");
  FetchedFixture f;
  f.make_deep("qwen2_moe", 1024);
  constexpr uint64_t kMemory = uint64_t{4} << 30;
  TrainConfig config = f.config_of({"deep"}, "planned", {4}, {4}, 10);
  config.recompute = Recompute::none;
  config.group = 1;
  config.cpu_memory = kMemory;
  const PlannedFetch all(config);
  config.kept_layers = 5;
  const PlannedFetch half(config);
  config.kept_layers = 0;
  const PlannedFetch none(config);
  CHECK(all.json.find("kept_layers") == nullptr);
  CHECK(half.json.find("kept_layers")->as_int() == 5);
  CHECK(none.volume("gradients") == all.volume("gradients"));
  CHECK(none.volume("experts") > all.volume("experts"));
  for (const PlannedFetch* each : {&all, &half, &none}) CHECK(require_fits(*each) == "");
  REQUIRE(none.own_bytes() < half.own_bytes());
  REQUIRE(half.own_bytes() < all.own_bytes());
  // With so much memory beside the program, whatever this process has grown to.
  const auto chosen = [&](uint64_t left) {
    PlacedModel model = all.run.model;
    PlanRequest request = all.run.request;
    model.process.program = kMemory - left;
    model.process.peak = model.opening_bytes = 0;
    model = replanned(std::move(model), request);
    fetch_what_does_not_fit(model, request);
    CHECK(model.plan.fits());
    CHECK(model.plan.shards == request.shards);
    return model;
  };
  const uint64_t less = (all.own_bytes() - half.own_bytes()) / 2;
  CHECK(chosen(all.own_bytes() + less).plan.shards.fetched_from == -1);
  const PlacedModel some = chosen(half.own_bytes() + less);
  const int32_t kept = some.plan.shards.fetched_from;
  CHECK((kept >= 5 && kept < 10));
  bool said = false;
  for (const std::string& line : domain_lines(some)) {
    said = said || line.find(fmt::format("layers from {} on", kept)) != line.npos;
  }
  CHECK(said);
}

TEST_CASE("fetched experts: take the memory of two layers in the arena") {
  FetchedFixture f;
  f.make_deep("qwen2_moe", 256);
  for (const bool recompute : {false, true}) {
    const auto planned = [&](int64_t kept) {
      TrainConfig config = f.config_of({"deep"}, "planned", {4}, {4}, kept);
      config.recompute = recompute ? Recompute::blocks : Recompute::none;
      return PlannedFetch(config);
    };
    const PlannedFetch all = planned(10), none = planned(0);
    for (size_t rank = 0; rank < 3; ++rank) {
      const PlacedModel& keeps = all.run.others[rank];
      const PlacedModel& fetches = none.run.others[rank];
      size_t fetched = 0;  // of the layer with most
      for (int32_t layer = 0; layer < 10; ++layer) {
        fetched = std::max(
            fetched,
            fetched_bytes(fetches.table, layer, fetches.opened->spec.experts, fetches.plan.policy));
      }
      REQUIRE(fetched > size_t{100} << 10);
      CHECK(host_arena(fetches) > host_arena(keeps) + fetched);
      CHECK(host_arena(fetches) <= host_arena(keeps) + 2 * fetched + 4096);
    }
  }
}

TEST_CASE("fetched experts: with adapters, ranks own equally many experts of a layer") {
  FetchedFixture f;
  const PlannedFetch planned(f.config_of(kLora, "planned", {2}, {2}, 0));
  const ParameterTable& table = planned.run.model.table;
  const auto of = [&](int64_t kept) {
    return PlannedFetch(f.config_of(kLora, "planned", {2}, {2}, kept)).run.model.plan.shards;
  };
  const Owners fetched = owners_of(table, of(0)), kept = owners_of(table, of(9));
  std::map<int32_t, std::vector<int>> owned;  // by layer and rank
  for (BlockId b = 0; b < std::ssize(table.blocks()); ++b) {
    const Block& block = table.block(b);
    if (table.is_trained(b)) CHECK(fetched.owner(b) == kept.owner(b));
    if (block.kind != BlockKind::expert) continue;
    std::vector<int>& ranks = owned[block.layer];
    ranks.resize(2);
    ++ranks[static_cast<size_t>(fetched.owner(b))];
  }
  REQUIRE_FALSE(owned.empty());
  for (const auto& [layer, ranks] : owned) CHECK(std::abs(ranks[0] - ranks[1]) <= 1);
}

TEST_CASE("fetched experts: where no expert is at several ranks\\, nothing is fetched") {
  FetchedFixture f;
  const PlannedFetch apart(f.config_of(kFull, "planned", {4}, {1}, 0));
  CHECK(apart.json.find("kept_layers") == nullptr);
  CHECK(std::ranges::none_of(apart.run.model.plan.train->schedule.tasks,
                             [](const Task& task) { return task.kind == TaskKind::fetch; }));
  TrainConfig whole = f.RanksFixture::config_of(kFull, "whole", 4, 1);
  whole.parallel = "hybrid-ep";
  whole.kept_layers = 0;
  REQUIRE(f.run(whole) == ExitCode::done);
  TrainConfig parts = whole;
  parts.out = f.dir / "parts";
  REQUIRE(f.run_until(f.config_of(kFull, "parts", {2}, {2}, 0), 1) == ExitCode::stopped);
  REQUIRE(f.run(parts) == ExitCode::done);
  CHECK(f.root("parts") == f.root("whole"));
}

TEST_CASE("fetched experts: a wrong weight is caught") {
  FetchedFixture f;
  const RunBits expected = f.bits_of(kLora, 4, 1);
  const TrainConfig config = f.config_of(kLora, "faulty", {4}, {4}, 0);
  const BodyOfFaultyRank faulty(TaskKind::fetch, [](const Body& right, const BodyContext& c) {
    right.run(c);
    const View weights = c.out(Value::fetched_experts);
    if (c.phase == Phase::backward && weights.size() > 1) weights.as<float>()[0] += 1;
  });
  CHECK(f.bits_of(config) != expected);
}

TEST_CASE("fetched experts: what does not go together is refused") {
  FetchedFixture f;
  const auto refused = [&](const std::string& part, const auto& change) {
    f.check_refused(f.config_of(kFull, "refused", {4}, {2}, 0), part, change);
  };
  refused("experts are fetched only with", [](TrainConfig& c) {
    c.parallel = "ep";
    c.levels = {};
    c.domains.reset();
  });
  refused("ranks keep weights that travel compressed",
          [](TrainConfig& c) { c.wire = {.kind = ExpertWire::Kind::residual, .ratio = 8}; });
}

}  // namespace hearth::test
