// The simulated step of several ranks: by hand, and with zebra's schedules, which must never wait for
// each other forever.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "modes/zebra.h"
#include "plan/rank_simulation.h"
#include "plan/zebra/expert_shift.h"
#include "plan/zebra/order_search.h"
#include "plan/zebra_cases.h"
#include "runtime/shared_parameters.h"
#include "support/tiny_model.h"

namespace hearth::test {
namespace {

using Catch::Approx;

Task task_of(TaskKind kind, int32_t layer = 0) {
  Task task;
  task.kind = kind;
  task.layer = layer;
  return task;
}

Schedule schedule_of(const std::vector<TaskKind>& kinds) {
  Schedule schedule;
  for (const TaskKind kind : kinds) schedule.tasks.push_back(task_of(kind));
  return schedule;
}

const OpSet& ops_of_ranks() {
  register_all_op_sets();
  return find_op_set("cpu");
}

/// The schedules of all ranks of a run with zebra, which take random times.
class ZebraRanks {
 public:
  ZebraRanks(RankShards shards, const ZebraOrder& order, int64_t group, bool recompute)
      : model_(tiny_config({{"num_hidden_layers", 3}, {"num_experts", 8}}), ops_of_ranks(),
               DType::f32) {
    for (shards.rank = 0; shards.rank < shards.ranks; ++shards.rank) {
      own_blocks(model_.table, shards);
      PlanInput input = model_.input(32, 32, shards.count() * 4);
      input.shards = shards;
      input.zebra_order = order;
      schedules_.push_back(zebra_planner().train(input, group, recompute).schedule);
    }
  }

  std::vector<SimulatedStep> run(uint64_t seed) const {
    ZebraRandom random(seed);
    std::vector<RankSchedule> ranks;
    for (const Schedule& schedule : schedules_) {
      std::vector<TaskDemand> demands(schedule.tasks.size());
      for (TaskDemand& demand : demands) {
        demand = {random.between(0, 2), 0, random.between(0, 1)};
      }
      ranks.push_back({&schedule, std::move(demands)});
    }
    return simulate_ranks(ranks);
  }

  Schedule& schedule(size_t rank) { return schedules_[rank]; }

 private:
  TinyModel model_;
  std::vector<Schedule> schedules_;
};

}  // namespace

TEST_CASE("rank simulation: a collective begins when the last rank has come to it") {
  const Schedule fast = schedule_of({TaskKind::norm, TaskKind::gather, TaskKind::clip});
  const Schedule slow =
      schedule_of({TaskKind::norm, TaskKind::norm, TaskKind::gather, TaskKind::clip});
  const std::vector<RankSchedule> ranks = {{&fast, {{2}, {0.5, 0, 0.5}, {1}}},
                                           {&slow, {{1}, {4}, {9, 0, 9}, {3}}}};
  const std::vector<SimulatedStep> steps = simulate_ranks(ranks);
  REQUIRE(steps.size() == 2);
  for (const SimulatedStep& step : steps) CHECK(step.time_s == Approx(9));
  const auto of = [&](size_t rank, TaskId task) {
    return *std::ranges::find(steps[rank].trace, task, &TaskTime::task);
  };
  CHECK(of(0, 1).begin == Approx(5));  // of the first rank, which says how long it takes
  CHECK(of(0, 1).end == Approx(6));
  CHECK(of(0, 2).end == Approx(7));
  CHECK(of(1, 2).end == Approx(6));
  CHECK(of(1, 3).begin == Approx(6));
  CHECK(steps[0].stall_s[0] == Approx(3));
  CHECK(steps[1].stall_s[0] == Approx(1));
}

TEST_CASE("rank simulation: ranks that do other things are told") {
  const Schedule one = schedule_of({TaskKind::gather, TaskKind::reduce});
  const std::vector<TaskDemand> demands(2);
  const auto refused = [&](const Schedule& other) {
    const std::vector<RankSchedule> ranks = {{&one, demands},
                                             {&other, std::vector<TaskDemand>(other.tasks.size())}};
    CHECK_THROWS_AS(simulate_ranks(ranks), std::logic_error);
  };
  refused(schedule_of({TaskKind::reduce, TaskKind::gather}));
  refused(schedule_of({TaskKind::gather}));
  refused(schedule_of({TaskKind::gather, TaskKind::norm}));
}

TEST_CASE("rank simulation: ranks of zebra never wait for each other forever") {
  ZebraRandom random(8);
  uint64_t seed = 0;
  for (const auto& [attention, experts] :
       {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}, {4, 2}, {2, 4}}) {
    for (int i = 0; i < 6; ++i) {
      const ShiftChunk chunk = shift_chunk(attention, experts);
      const int32_t most = (8 / experts - 1) / chunk.given;
      RankShards shards{attention, attention + experts, 0, true, attention + experts, attention};
      for (int layer = 0; layer < 3 && i % 3 > 0; ++layer) {
        shards.expert_shift.push_back(random.integer(0, most) * chunk.given);
      }
      ZebraOrder order;
      if (i % 2 == 1) {
        ZebraCase times = random.any(3);
        times.experts = 8;
        times.expert_ranks = experts;
        times.attention_ranks = attention;
        order = find_zebra_order(times.times(), 4, shards.expert_shift).order;
      }
      const ZebraRanks ranks(shards, order, i < 4 ? 4 : 3, i % 4 > 1);
      for (int again = 0; again < 3; ++again) CHECK_NOTHROW(ranks.run(++seed));
    }
  }
}

TEST_CASE("rank simulation: an exchange that a rank of zebra left out or swapped is found") {
  const RankShards shards{2, 4, 0, true, 4, 2, {1, 0, 2}};
  const auto exchanges = [](const Schedule& s) {
    std::vector<size_t> at;
    for (size_t t = 0; t < s.tasks.size(); ++t) {
      if (s.tasks[t].kind == TaskKind::return_rows) at.push_back(t);
    }
    return at;
  };
  CHECK_NOTHROW(ZebraRanks(shards, {}, 4, false).run(1));
  ZebraRanks less(shards, {}, 4, false);
  std::vector<Task>& tasks = less.schedule(3).tasks;
  tasks.erase(tasks.begin() + static_cast<int64_t>(exchanges(less.schedule(3)).front()));
  CHECK_THROWS_AS(less.run(1), std::logic_error);
  ZebraRanks other(shards, {}, 4, false);
  Schedule& schedule = other.schedule(1);
  std::swap(schedule.tasks[exchanges(schedule).front()],
            schedule.tasks[exchanges(schedule).back()]);
  CHECK_THROWS_AS(other.run(1), std::logic_error);
}

}  // namespace hearth::test
