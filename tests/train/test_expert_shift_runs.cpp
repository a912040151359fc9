// Runs with zebra whose attention ranks compute some experts, too (--expert-shift): the bits of one
// rank, and what the plan says.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "base/json.h"
#include "base/sanitized.h"
#include "budget/plan_file.h"
#include "budget/plan_report.h"
#include "budget/role_times.h"
#include "budget/zebra_choice.h"
#include "plan/kind_costs.h"
#include "plan/zebra/expert_shift.h"
#include "plan/zebra/order_search.h"
#include "train/faulty_rank.h"
#include "train/planned_run.h"
#include "train/rank_crew.h"
#include "train/ranks_fixture.h"

namespace hearth::test {
namespace {

/// Shifts that the ranks allow: the most in some layers, none or one chunk in others.
std::vector<int32_t> some_shift(int32_t attention, int32_t experts, int32_t of_layer,
                                size_t layers) {
  const ShiftChunk chunk = shift_chunk(attention, experts);
  const int32_t most = (of_layer / experts - 1) / chunk.given * chunk.given;
  std::vector<int32_t> shift;
  for (size_t layer = 0; layer < layers; ++layer) {
    shift.push_back(layer % 3 == 0 ? most : layer % 3 == 1 ? 0 : std::min(most, chunk.given));
  }
  return shift;
}

class ShiftFixture : public RanksFixture {
 public:
  struct Model {
    TrainedWith with;
    int32_t experts;
    size_t layers;  // with experts
  };

  /// The bits of one rank with these roles: ranks, and how many compute attention.
  void check(const Model& model, int64_t shards,
             const std::vector<std::pair<int32_t, int32_t>>& roles) {
    const RunBits expected = bits_of(model.with, shards, 1);
    REQUIRE(expected.steps.size() == 3);
    for (const auto& [ranks, attention] : roles) {
      set_mode("zebra", attention);
      set_expert_shift(some_shift(attention, ranks - attention, model.experts, model.layers));
      INFO(text_of(model.with, {}) << " on " << ranks << " ranks, " << attention);
      CHECK(bits_of(model.with, shards, ranks) == expected);
    }
    set_mode("dp");
    set_expert_shift({{}});
  }

  const Model full{kFull, 6, 3}, lora{kLora, 6, 2}, bf16{{"tied", {}, ComputeChoice::bf16}, 6, 3},
      lora_bf16{{"qwen3_moe", 0.2, ComputeChoice::bf16}, 6, 2}, olmoe{{"olmoe"}, 5, 3},
      mixtral{{"mixtral", 0.2}, 4, 3};
};

}  // namespace

TEST_CASE("expert shift runs: the bits of one rank") {
  ShiftFixture f;
  if (kSanitized) return f.check(f.lora, 4, {{4, 2}});
  f.check(f.full, 4, {{4, 2}});
  f.check(f.lora_bf16, 4, {{3, 1}});
}

TEST_CASE("expert shift runs: the bits of one rank\\, in every family and role", "[.long]") {
  ShiftFixture f;
  f.check(f.full, 8, {{2, 1}, {4, 1}, {3, 2}, {6, 4}});
  f.check(f.lora, 4, {{4, 2}, {3, 1}, {3, 2}});
  f.check(f.bf16, 4, {{4, 2}, {6, 4}, {3, 1}});
  f.check(f.lora_bf16, 4, {{4, 2}, {2, 1}});
  f.check(f.olmoe, 4, {{4, 2}, {3, 2}});
  f.check(f.mixtral, 4, {{3, 1}, {4, 2}});
}

TEST_CASE("expert shift runs: groups and recompute change no bit", "[.long]") {
  RanksFixture f;
  f.set_expert_shift({{1, 1}});
  for (const TrainedWith& with : {kFull, kLora}) {
    f.set_mode("dp");
    TrainConfig config = f.config_of(with, "one" + with.family, 4, 1);
    config.grad_accum = 8;
    const RunBits expected = f.bits_of(config);
    REQUIRE(expected.steps.size() == 3);
    f.set_mode("zebra", 2);
    f.set_expert_shift(with.family == kFull.family ? std::vector<int32_t>{4, 0, 2}
                                                   : std::vector<int32_t>{2, 4});
    for (const bool recompute : {false, true}) {
      for (const int64_t group : {1, 2}) {
        TrainConfig shared = f.config_of(with, "shared", 4, 3);
        shared.grad_accum = 8;
        shared.group = group;
        shared.recompute = recompute ? Recompute::blocks : Recompute::none;
        INFO(with.family << (recompute ? " recomputed" : "") << " in groups of " << group);
        CHECK(f.bits_of(shared) == expected);
        remove_tree(shared.out);
      }
    }
  }
}

TEST_CASE("expert shift runs: a run goes on with experts at other ranks") {
  RanksFixture f;
  f.check_path(kFull, {{4, "zebra", 2, "auto", {2, 0, 1}},
                       {4, "zebra", 2, "auto", {0, 1, 2}},
                       {3, "zebra", 1},
                       {3, "zebra", 2, "auto", {4, 0, 2}}});
}

TEST_CASE("expert shift runs: what the plan chooses has the bits of one rank\\, too") {
  RanksFixture f;
  const RunBits expected = f.bits_of(kLora, 4, 1);
  REQUIRE(expected.steps.size() == 3);
  f.set_mode("zebra", 2);
  f.set_expert_shift(std::nullopt);
  CHECK(f.bits_of(kLora, 4, 4) == expected);
}

TEST_CASE("expert shift runs: another order has the bits of one rank\\, and is in the plan file") {
  RanksFixture f;
  const auto config_of = [&](const std::string& out, int64_t ranks) {
    TrainConfig c = f.config_of(kFull, out, 2, ranks);
    c.grad_accum = 8;
    c.group = 4;
    return c;
  };
  const RunBits expected = f.bits_of(config_of("one", 1));
  REQUIRE(expected.steps.size() == 3);
  f.set_mode("zebra", 2);
  f.set_expert_shift({{1, 0, 2}});
  // Whatever the plan would choose: what a search finds for slow links.
  ZebraTimes times{2, 2, 6, std::vector<ZebraTime>(4, {1, 2}), std::vector<ZebraLayerTimes>(3)};
  for (ZebraLayerTimes& of : times.layers) of = {{1, 2}, {1, 2}, {3, 3}, {3, 3}};
  const FoundOrder found = find_zebra_order(times, 4, {1, 0, 2});
  REQUIRE(found.is_other());
  TrainConfig four = config_of("four", 4);
  four.zebra_order = found.order;
  CHECK(f.bits_of(four) == expected);
  four.recompute = Recompute::blocks;
  four.out = f.dir / "again";
  CHECK(f.bits_of(four) == expected);

  RecordingReporter reporter;
  const PlannedRun run(four, open_model(four), reporter);
  const Json plan = plan_json(run.model, run.times, run.model.plan.places);
  f.write(f.dir / "plan.json", plan.dump());
  f.set_expert_shift(std::nullopt);
  TrainConfig planned = config_of("planned", 4);
  planned.plan_file = f.dir / "plan.json";
  planned = as_planned(planned);
  CHECK(planned.expert_shift == std::vector<int32_t>{1, 0, 2});
  CHECK(planned.zebra_order == found.order);
  const PlannedRun again(planned, open_model(planned), reporter);
  CHECK(again.model.plan.train->zebra_order == found.order);
  std::swap(planned.zebra_order->front(), planned.zebra_order->back());
  const Raised raised = raised_by([&] { PlannedRun(planned, open_model(planned), reporter); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("not one of 3 layers and groups of 4"));
}

TEST_CASE("expert shift runs: times of stages and layers add up to those of the tasks") {
  RanksFixture f;
  f.set_mode("zebra", 1);
  const TrainConfig config = f.config_of(kFull, "run", 3, 3);
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  const StepWork work = full_step(run.request);
  const PlacedModel& model = run.model;
  REQUIRE(model.zebra);
  REQUIRE(model.rates);
  const ZebraTimes times = zebra_times(model, *model.zebra, work);
  const auto sum_of = [&](const Schedule& schedule, const ParameterTable& table, bool experts,
                          bool talks) {
    double sum = 0;
    for (const Task& task : schedule.tasks) {
      if (task.rows.none() || (task.kind == TaskKind::experts) != experts) continue;
      if (kind_costs(task.kind).talks != talks) continue;
      sum += task_cost(schedule, task, work_of(task.rows, work.batches), model.opened->spec, table,
                       model.rates->costs)
                 .total_s();
    }
    return sum / static_cast<double>(schedule.micro_batches);
  };
  double stages = 0, layers = 0, links = 0;
  for (const ZebraTime& stage : times.stages) stages += stage.total();
  for (const ZebraLayerTimes& of : times.layers) {
    layers += 3 * of.expert_there.total();  // of 6 experts on 2 ranks
    links += of.out.total() + of.back.total();
    CHECK(of.expert_there.forward > 0);
    CHECK(of.expert_there.backward > 0);
  }
  const Schedule& attention = model.plan.train->schedule;
  CHECK(stages == Catch::Approx(sum_of(attention, model.table, false, false)));
  CHECK(links == Catch::Approx(sum_of(attention, model.table, false, true)));
  CHECK(layers ==
        Catch::Approx(sum_of(model.zebra->plan.train->schedule, model.zebra->table, true, false)));
  for (const ZebraTime& stage : times.stages) CHECK(stage.forward > 0);
}

TEST_CASE("expert shift runs: the plan says who has which experts, and what fails") {
  RanksFixture f;
  f.set_mode("zebra", 1);
  f.set_expert_shift({{2, 0, 1}});  // of 6 experts, on one attention rank and two others
  const TrainConfig config = f.config_of(kFull, "run", 3, 3);
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  const Json plan = plan_json(run.model, run.times, run.model.plan.places);
  CHECK(plan.find("expert_shift")->dump() == "[2, 0, 1]");
  const JsonArray& ranks = plan.find("ranks")->as_array();
  const auto experts = [&](size_t rank, size_t layer) {
    return ranks[rank].find("experts")->as_array()[layer].dump();
  };
  CHECK(experts(0, 0) == "[0, 1, 2, 3]");
  CHECK(experts(0, 1) == "[]");
  CHECK(experts(0, 2) == "[0, 1]");
  CHECK(experts(1, 0) == "[4]");
  CHECK(experts(2, 0) == "[5]");
  CHECK(experts(1, 1) == "[0, 1, 2]");
  CHECK(experts(2, 2) == "[4, 5]");
  const Json& theorem = *plan.find("theorem_1");
  CHECK_FALSE(theorem.find("holds")->as_bool());
  CHECK_FALSE(theorem.find("fails")->as_array().empty());
  const Json& zebra = *plan.find("zebra");
  CHECK(zebra.find("group_s")->as_double() > 0);
  CHECK(run.times.step.time_s >= zebra.find("group_s")->as_double() * 0.5);
}

TEST_CASE("expert shift runs: the plan counts the memory of each rank by its own schedule") {
  RanksFixture f;
  f.set_mode("zebra", 2);
  for (const std::vector<int32_t>& shift : {std::vector<int32_t>(), {2, 0, 1}}) {
    f.set_expert_shift(shift);
    TrainConfig config = f.config_of(kFull, "run", 4, 4);
    config.eval_data.clear();  // rank 0 alone evaluates
    RecordingReporter reporter;
    const PlannedRun run(config, open_model(config), reporter);
    double planned = 0, sum = 0;
    for (const MemoryLine& line : run.model.plan.host().lines) {
      if (line.id.use == MemoryUse::ranks) planned += static_cast<double>(line.bytes);
    }
    for (int32_t rank = 1; rank < 4; ++rank) {
      const PlacedModel other = placed_for_rank(trained_model(run.opened, run.config), run.request,
                                                *run.model.plan.train, rank);
      for (const MemoryLine& line : other.plan.host().lines) {
        const MemoryUse use = line.id.use;
        const bool own = use == MemoryUse::parameters || use == MemoryUse::activations ||
                         use == MemoryUse::scratch || use == MemoryUse::sums ||
                         use == MemoryUse::schedules || use == MemoryUse::tables;
        if (own) sum += static_cast<double>(line.bytes);
      }
    }
    INFO(planned << " and " << sum);
    CHECK(planned >= sum);
    CHECK(planned <= 1.02 * sum);
  }
}

TEST_CASE("expert shift runs: what cannot be is refused\\, with the numbers") {
  RanksFixture f;
  f.set_mode("zebra", 2);
  const auto refused = [&](const std::string& part, const auto& change) {
    f.check_refused(f.config_of(kFull, "refused", 4, 4), part, change);
  };
  refused("0 to 2 would do", [](TrainConfig& c) { c.expert_shift = {{3, 0, 0}}; });
  refused("3 layers with experts", [](TrainConfig& c) { c.expert_shift = {{1, 0}}; });
  refused("multiples of 2 up to 4 would do", [](TrainConfig& c) {
    c.thread_ranks = 3;
    c.expert_shift = {{1, 0, 0}};
  });
  refused("experts move to attention ranks of", [](TrainConfig& c) {
    c.parallel = "ep";
    c.attention_ranks = 0;
    c.expert_shift = {{1, 0, 0}};
  });
}

TEST_CASE("expert shift runs: faults of an attention rank's experts are caught") {
  RanksFixture f;
  const TrainedWith with{"mixtral"};
  const RunBits expected = f.bits_of(with, 4, 1);
  REQUIRE(expected.steps.size() == 3);
  f.set_mode("zebra", 2);
  f.set_expert_shift({{1, 0, 1}});
  const auto caught = [&](BodyOfFaultyRank::Run run) {
    const BodyOfFaultyRank faulty(TaskKind::experts, run);
    RunBits bits;
    const Raised raised = raised_by([&] { bits = f.bits_of(with, 4, 4); });
    INFO(raised.message);
    return raised.code != ExitCode::done || bits != expected;
  };
  CHECK(caught([](const Body& right, const BodyContext& c) {  // its own rows
    if (c.ranks->experts(c.layer).position != 1 || c.part.guests) right.run(c);
  }));
  CHECK(caught([](const Body& right, const BodyContext& c) {  // those of the other attention rank
    const bool backward = c.phase == Phase::backward;
    if (c.ranks->experts(c.layer).position != 0 || !c.part.guests || !backward) right.run(c);
  }));
  CHECK(f.bits_of(with, 4, 4) == expected);
}

}  // namespace hearth::test
