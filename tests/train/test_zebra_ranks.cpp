// Zebra on ranks that are not alike (--rank-devices): their cost tables and their memory in the plan.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "base/sanitized.h"
#include "budget/plan_report.h"
#include "budget/rank_memory.h"
#include "budget/role_times.h"
#include "budget/zebra_choice.h"
#include "support/spelled_as_flags.h"
#include "train/planned_run.h"
#include "train/ranks_fixture.h"

namespace hearth::test {
namespace {

/// A table by which attention and experts take so many seconds per token, and all else little.
std::string table_text(double attention, double experts) {
  std::string entries;
  for (const std::string kind :
       {"embed", "attention", "mlp", "dispatch", "experts", "combine", "head", "norm", "update"}) {
    const double each = kind == "attention" ? attention : kind == "experts" ? experts : 1e-9;
    for (const char* phase : {"forward", "backward"}) {
      if (!entries.empty()) entries += ",\n";
      entries += R"({"kind": ")" + kind + R"(", "phase": ")" + phase +
                 R"(", "dtype": "f32", "units": [1, 1000], "seconds": [)" + Json(each).dump() +
                 ", " + Json(1000 * each).dump() + "]}";
    }
  }
  return R"({"format": "hearth-costs-1", "device": "host", "machine": "a test",
    "made": "now", "entries": [)" +
         entries + R"(], "links": []})";
}

class UnequalRanks : public RanksFixture {
 public:
  UnequalRanks() {
    set_mode("zebra", 2);
    set_expert_shift(std::nullopt);
    write(dir / "fast.json", table_text(1e-5, 1e-5));
    write(dir / "slow.json", table_text(5e-5, 4e-5));
    write(dir / "slower.json", table_text(6e-5, 8e-5));
  }
  std::string at(const std::string& table, const std::string& device = "host:") const {
    return device + "costs=" + (dir / (table + ".json"));
  }
  /// 2 + 2 ranks with these devices.
  TrainConfig with(const std::vector<std::string>& devices,
                   const TrainedWith& trained = kFull) const {
    TrainConfig config = config_of(trained, "run", 2, 4);
    config.grad_accum = 8;
    config.group = 4;
    config.recompute = Recompute::none;
    config.compute = ComputeChoice::f32;
    config.eval_data.clear();
    config.devices = devices.front();
    for (size_t rank = 0; rank < devices.size(); ++rank) {
      const auto number = static_cast<int32_t>(rank);
      config.rank_devices.push_back({number, number, devices[rank]});
    }
    return config;
  }
  std::unique_ptr<PlannedRun> planned(const TrainConfig& config) {
    unbind_thread();
    reporter = RecordingReporter();
    return std::make_unique<PlannedRun>(config, open_model(config), reporter);
  }
  ZebraTimes times_of(const PlannedRun& run) const {
    return zebra_times(run.model, *run.model.zebra, full_step(run.request));
  }
  RecordingReporter reporter;
};

int64_t moved_in(const PlannedRun& run) {
  const ExpertShift& shift = run.model.plan.shards.expert_shift;
  return std::accumulate(shift.begin(), shift.end(), int64_t{0});
}

}  // namespace

TEST_CASE("zebra ranks: each role has the times of its own cost table") {
  UnequalRanks f;
  const std::string fast = f.at("fast"), slow = f.at("slow");
  const auto alike = f.planned(f.with({fast, fast, fast, fast}));
  const auto apart = f.planned(f.with({fast, fast, slow, slow}));
  const ZebraTimes a = f.times_of(*alike), b = f.times_of(*apart);
  for (size_t layer = 0; layer < a.layers.size(); ++layer) {
    const ZebraLayerTimes &before = a.layers[layer], &after = b.layers[layer];
    CHECK(before.expert_there.forward == before.expert_here.forward);
    CHECK(after.expert_here.backward == Catch::Approx(before.expert_here.backward));
    CHECK(after.expert_there.forward == Catch::Approx(4 * before.expert_there.forward));
    CHECK(after.expert_there.backward == Catch::Approx(4 * before.expert_there.backward));
  }
  for (size_t stage = 0; stage < a.stages.size(); ++stage) {
    CHECK(a.stages[stage].forward == Catch::Approx(b.stages[stage].forward));
  }
  CHECK(moved_in(*apart) > moved_in(*alike));
  CHECK(apart->times.step.time_s > alike->times.step.time_s);
  const Json plan = plan_json(apart->model, apart->times, apart->model.plan.places);
  const JsonArray& costs = plan.find("zebra")->find("rank_costs")->as_array();
  REQUIRE(costs.size() == 1);
  CHECK(costs[0].find("rank")->as_int() == 2);
  CHECK(costs[0].find("place")->as_string() == "host");
  CHECK(f.reporter.warnings.empty());
}

TEST_CASE("zebra ranks: of unequal ranks of a role the slowest counts") {
  UnequalRanks f;
  const std::string fast = f.at("fast"), slow = f.at("slow"), slower = f.at("slower");
  const auto experts = f.planned(f.with({fast, fast, slow, slower}));
  const auto attention = f.planned(f.with({fast, slow, slower, slower}));
  const ZebraTimes a = f.times_of(*experts), b = f.times_of(*attention);
  for (size_t layer = 0; layer < a.layers.size(); ++layer) {
    const ZebraLayerTimes &of = a.layers[layer], &other = b.layers[layer];
    CHECK(of.expert_there.forward == Catch::Approx(8 * of.expert_here.forward));
    CHECK(other.expert_there.forward == Catch::Approx(2 * other.expert_here.forward));
    CHECK(b.stages[layer].forward == Catch::Approx(5 * a.stages[layer].forward).epsilon(0.01));
  }
}

TEST_CASE("zebra ranks: attention ranks with a device\\, expert ranks without") {
  UnequalRanks f;
  const std::string device = "virtual:mem=64M/", fast = f.at("fast", device), slow = f.at("slow");
  const TrainConfig config = f.with({fast, fast, slow, slow});
  const auto run = f.planned(config);
  const ZebraTimes times = f.times_of(*run);
  CHECK(times.layers[0].expert_there.forward ==
        Catch::Approx(4 * times.layers[0].expert_here.forward));
  CHECK(moved_in(*run) > 0);
  CHECK(run->others[1].opened->devices.places.size() == 1);
  if (kSanitized) return;
  TrainConfig one = f.config_of(kFull, "one", 2, 1);
  one.grad_accum = 8;
  one.eval_data.clear();
  CHECK(f.bits_of(config) == f.bits_of(one));
}

TEST_CASE("zebra ranks: NUMA nodes of one machine") {
  UnequalRanks f;
  const EmulatedNodes nodes(2);
  TrainConfig one = f.config_of(kFull, "one", 2, 1);
  const RunBits expected = f.bits_of(one);
  f.set_mode("zebra", 1);
  TrainConfig two = f.config_of(kFull, "two", 2, 2);
  two.rank_devices = {{0, 0, "host:0"}, {1, 1, "host:1"}};
  two.devices = "host:0";
  CHECK(f.bits_of(two) == expected);
}

TEST_CASE("zebra ranks: the plan says what ep would take on the same ranks") {
  const SpelledAsFlags flags;
  UnequalRanks f;
  const std::string fast = f.at("fast"), slow = f.at("slow");
  const auto says = [](const PlannedRun& run, const std::string& part) {
    const std::vector<std::string> lines = zebra_lines(run.model, run.times);
    return std::ranges::any_of(
        lines, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  const auto ep_of = [](const PlannedRun& run) {
    const Json plan = plan_json(run.model, run.times, run.model.plan.places);
    return *plan.find("zebra")->find("ep_s");
  };
  TrainConfig uneven = f.with({fast, fast, slow, slow});
  const auto apart = f.planned(uneven);
  CHECK(says(*apart, "--parallel ep --logical-shards 4 would not be faster on these ranks"));
  // The plan of such a run, if all ranks are as slow as the slowest: all wait for it.
  TrainConfig even = f.with({slow, slow, slow, slow});
  even.parallel = "ep";
  even.attention_ranks = 0;
  even.logical_shards = 4;
  const auto ep = f.planned(even);
  CHECK(ep_of(*apart).as_double() == Catch::Approx(ep->times.step.time_s).epsilon(0.01));
  CHECK(ep_of(*apart).as_double() > apart->times.step.time_s);

  // Without experts that move, equal ranks of zebra wait for each other.
  TrainConfig alike = f.with({fast, fast, fast, fast});
  alike.expert_shift = std::vector<int32_t>();
  const auto equal = f.planned(alike);
  CHECK(says(*equal, "--parallel ep --logical-shards 4 would be faster on these ranks"));
  CHECK(ep_of(*equal).as_double() < equal->times.step.time_s);

  uneven.grad_accum = 6;  // not four equal parts
  uneven.group = 3;
  const auto none = f.planned(uneven);
  CHECK(ep_of(*none).is_null());
  CHECK_FALSE(says(*none, "--parallel ep"));
}

TEST_CASE("zebra ranks: a warning where the first ranks are not the fastest") {
  UnequalRanks f;
  const std::string fast = f.at("fast"), slow = f.at("slow");
  f.planned(f.with({slow, slow, fast, fast}));
  REQUIRE(f.reporter.warnings.size() == 1);
  CHECK(f.reporter.warnings[0].find("rank 2 would be faster at it than rank 0") !=
        std::string::npos);
  f.planned(
      f.with({fast, slow, slow, fast}));  // the slowest of the first, the fastest of the others
  REQUIRE(f.reporter.warnings.size() == 1);
  CHECK(f.reporter.warnings[0].find("rank 3 would be faster at it than rank 1") !=
        std::string::npos);
}

TEST_CASE("zebra ranks: the speed of a rank goes to other processes and back") {
  UnequalRanks f;
  const auto run = f.planned(f.with({f.at("fast", "virtual:h2d=1G/"), f.at("fast"), f.at("slow"),
                                     f.at("slow", "virtual:h2d=2G/latency=1ms/")}));
  const std::vector<RankSpeed>& speeds = run->model.zebra->speeds;
  REQUIRE(speeds.size() == 4);
  for (size_t i = 1; i < speeds.size(); ++i) {
    const RankSpeed back = speed_in(speed_text(speeds[i]));
    CHECK(back.rank == speeds[i].rank);
    CHECK(back.place == speeds[i].place);
    CHECK(back.costs.table->digest() == speeds[i].costs.table->digest());
    CHECK(back.paced);
    CHECK(back.links.in.bytes_per_s == speeds[i].links.in.bytes_per_s);
    CHECK(back.links.in.latency_s == speeds[i].links.in.latency_s);
  }
  CHECK(speeds[3].links.in.bytes_per_s == 2e9);
}

namespace {

/// With devices of so much memory at each role, and experts that take long.
std::vector<std::string> with_memory(const UnequalRanks& f, uint64_t attention, uint64_t experts) {
  const auto device = [&](const std::string& table, uint64_t bytes) {
    return f.at(table, "virtual:mem=" + std::to_string(bytes) + "/");
  };
  const std::string of_attention = device("fast", attention), of_experts = device("slow", experts);
  return {of_attention, of_attention, of_experts, of_experts};
}

constexpr uint64_t kPlenty = 64 << 20;

/// The peaks of the first ranks of both roles with a shift.
std::pair<uint64_t, uint64_t> peaks_with(UnequalRanks& f, const std::vector<int32_t>& shift) {
  TrainConfig config = f.with(with_memory(f, kPlenty, kPlenty));
  config.expert_shift = shift;
  const auto run = f.planned(config);
  return {run->model.plan.places[1].peak, run->others[2].plan.places[1].peak};
}

}  // namespace

TEST_CASE("zebra ranks: the shift that the plan chooses fits in memory") {
  UnequalRanks f;
  const auto [attention_0, experts_0] = peaks_with(f, {0, 0, 0});
  const auto [attention_1, experts_1] = peaks_with(f, {0, 0, 1});
  const auto [attention_6, experts_6] = peaks_with(f, {2, 2, 2});
  REQUIRE(attention_0 < attention_1);
  REQUIRE(attention_1 < attention_6);
  REQUIRE(experts_0 > experts_1);
  REQUIRE(experts_1 > experts_6);
  const auto plan = [&](uint64_t attention, uint64_t experts) {
    auto run = f.planned(f.with(with_memory(f, attention, experts)));
    CHECK(run->model.plan.fits());
    CHECK(what_ranks_miss(run->model.plan).empty());
    return moved_in(*run);
  };
  const int64_t free = plan(kPlenty, kPlenty);
  CHECK(free > 1);
  CHECK(plan(attention_0, kPlenty) == 0);
  CHECK(plan(attention_1, kPlenty) == 1);
  CHECK(plan(kPlenty, experts_6) == 6);
  CHECK(plan(attention_6, experts_6) == 6);
}

TEST_CASE("zebra ranks: memory for no shift at all is refused\\, with the numbers") {
  UnequalRanks f;
  const uint64_t attention_0 = peaks_with(f, {0, 0, 0}).first;
  const uint64_t experts_6 = peaks_with(f, {2, 2, 2}).second;
  const Raised raised =
      raised_by([&] { f.planned(f.with(with_memory(f, attention_0, experts_6))); });
  INFO(raised.message);
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("expert ranks lack memory for 12 experts, and attention ranks can take 0"));
}

TEST_CASE("zebra ranks: a shift without memory for it is refused\\, with what would do") {
  UnequalRanks f;
  const auto [attention_1, experts_1] = peaks_with(f, {0, 0, 1});
  const auto refused = [&](uint64_t attention, uint64_t experts,
                           const std::vector<int32_t>& shift) {
    TrainConfig config = f.with(with_memory(f, attention, experts));
    config.expert_shift = shift;
    const Raised raised = raised_by([&] { f.planned(config); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::usage);
    return raised;
  };
  const Raised most = refused(attention_1, kPlenty, {2, 0, 1});
  INFO(most.message);
  CHECK(most.says("rank 0: the plan needs"));
  CHECK(most.says("room for 1 expert of all layers each, not for 3"));
  CHECK(most.says("0,0,1 would do"));
  const Raised least = refused(kPlenty, experts_1, {});
  INFO(least.message);
  CHECK(least.says(" off: rank 3: the plan needs"));
  CHECK(least.says("at least 2 experts of all layers must move"));
}

}  // namespace hearth::test
