// What ranks cost in predictions: links by hand on small numbers, and the bytes of a step's tasks.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "plan/cost_model.h"
#include "plan/simulator.h"
#include "runtime/shared_parameters.h"
#include "support/single_mode.h"
#include "support/tiny_model.h"

namespace hearth::test {
namespace {

using Catch::Approx;

constexpr double kMega = 1e6;

/// What the checking world sends beside a collective, for each other rank.
double beside(double others, double bytes_per_s) { return others * 72 / bytes_per_s; }

TEST_CASE("rank links: all messages of a rank share its link\\, in each direction") {
  const RankLinks links(3, {kMega, 2e-3});
  CHECK(links.latency_s() == 2e-3);
  Traffic traffic(3);
  traffic.add(0, 1, 1e6);
  traffic.add(0, 2, 1e6);
  traffic.add(1, 0, 1.5e6);
  traffic.add(1, 1, 9e9);  // to itself
  CHECK(traffic.total() == 3.5e6);
  CHECK(links.busy_s(traffic) == Approx(2 + beside(2, kMega)));  // out of rank 0
  traffic.add(2, 0, 1e6);
  CHECK(links.busy_s(traffic) == Approx(2.5 + beside(2, kMega)));  // into rank 0
  CHECK(links.busy_s(Traffic(3)) == Approx(beside(2, kMega)));
  CHECK(RankLinks(3, LinkRate{}).busy_s(traffic) == 0);
  CHECK(RankLinks().busy_s(Traffic(1)) == 0);
}

TEST_CASE("rank links: hosts share what their ranks send to other hosts") {
  // Two ranks on each of two hosts. Between them a pair reaches 100 MB/s alone, four 25 together.
  const RankLinks links({"a", "a", "b", "b"}, [](int32_t from, int32_t to) {
    const bool same = from / 2 == to / 2;
    return same ? PairRate{1000 * kMega, 1e-5, 1000 * kMega}
                : PairRate{100 * kMega, 5e-5, 25 * kMega};
  });
  CHECK(links.latency_s() == 5e-5);
  CHECK(links.slowest() == 100 * kMega);
  CHECK(links.fastest() == 1000 * kMega);
  Traffic one(4);
  one.add(0, 2, 100 * kMega);
  CHECK(links.busy_s(one) == Approx(1).epsilon(1e-4));
  Traffic both(4);  // by ranks of their own, over one link
  both.add(0, 2, 100 * kMega);
  both.add(1, 3, 100 * kMega);
  CHECK(links.busy_s(both) == Approx(2).epsilon(1e-4));
  // To hosts of their own, they still share the link of their host.
  const RankLinks apart({"a", "a", "b", "c"}, [](int32_t, int32_t) {
    return PairRate{100 * kMega, 5e-5, 25 * kMega};
  });
  CHECK(apart.busy_s(both) == Approx(2).epsilon(1e-4));
  Traffic ways(4);  // the directions do not share
  ways.add(0, 2, 100 * kMega);
  ways.add(2, 0, 100 * kMega);
  CHECK(links.busy_s(ways) == Approx(1).epsilon(1e-4));
  Traffic within(4);
  within.add(0, 1, 100 * kMega);
  CHECK(links.busy_s(within) == Approx(0.1).epsilon(1e-3));
}

const OpSet& cpu_ops() {
  register_all_op_sets();
  return find_op_set("cpu");
}

/// A step of a rank.
struct RankStepCase {
  explicit RankStepCase(RankShards shards) : model(tiny_config(), cpu_ops(), DType::f32) {
    own_blocks(model.table, shards);
    PlanInput input = model.input(32, 32, shards.count());
    input.shards = shards;
    schedule = single_train_schedule(input, 1, false);
    costs.shards = shards;
    if (shards.ranks > 1) costs.owners = owners_of(model.table, shards);
    for (const Tensor& t : model.table.tensors()) elements += static_cast<double>(t.size());
  }
  /// Of all tasks of a kind.
  Traffic traffic(TaskKind kind) const {
    Traffic sum(costs.shards.ranks);
    for (const Task& task : schedule.tasks) {
      if (task.kind != kind) continue;
      const Traffic own = traffic_of(task, costs, model.table, rows);
      for (int32_t from = 0; from < sum.ranks(); ++from) {
        for (int32_t to = 0; to < sum.ranks(); ++to) sum.add(from, to, own.bytes(from, to));
      }
    }
    return sum;
  }
  double swept(TaskKind kind) const {
    double bytes = 0;
    for (const Task& task : schedule.tasks) {
      if (task.kind == kind) bytes += swept_bytes(task, costs, model.table);
    }
    return bytes;
  }

  TinyModel model;
  Schedule schedule;
  RankCosts costs;
  RoutedRows rows = {.bytes = 1000, .experts = 5};  // of a micro-batch
  double elements = 0;
};

TEST_CASE("rank costs: a routed row goes to its expert's rank and back\\, forward and backward") {
  // Of evenly spread rows each rank keeps its own share: five experts on four ranks, and the first of
  // each pair has two of five, the other three.
  struct Case {
    RankShards shards;
    double away;  // share of all rows that leave their rank
  };
  const Case cases[] = {
      {{4, 4, 0, true, 4}, 4 - 1.0}, {{4, 4, 0, true, 2}, 4 - 2.0}, {{2, 4, 0, true, 4, 2}, 2.0}};
  for (const Case& each : cases) {
    const RankStepCase step(each.shards);
    double layers = 0;
    for (int64_t layer = 0; layer < step.model.spec.layers; ++layer) {
      layers += step.model.spec.has_experts(layer) ? 1 : 0;
    }
    const double one_way = 1000 * each.away * layers * 2;
    CHECK(step.traffic(TaskKind::send_rows).total() == Approx(one_way));
    CHECK(step.traffic(TaskKind::return_rows).total() == Approx(one_way));
  }
}

TEST_CASE("rank costs: gradients go once to their owners\\, weights once to all") {
  for (const RankShards& shards : {RankShards{2, 2, 0}, RankShards{8, 4, 0}}) {
    RankStepCase step(shards);
    const double others = shards.ranks - 1;
    CHECK(step.traffic(TaskKind::reduce).total() == Approx(4 * step.elements * others));
    CHECK(step.traffic(TaskKind::give).total() == Approx(4 * step.elements * others));
    step.costs.weight_bytes = 2;
    CHECK(step.traffic(TaskKind::give).total() == Approx(2 * step.elements * others));
    const auto tensors = static_cast<double>(step.model.table.tensors().size());
    CHECK(step.traffic(TaskKind::gather).total() == 8 * tensors * others);
  }
  // Three shards of a rank are two subtrees of the tree over six.
  const RankStepCase three(RankShards{6, 2, 0});
  CHECK(three.traffic(TaskKind::reduce).total() == Approx(2 * 4 * three.elements));
}

TEST_CASE("rank costs: experts that are fetched travel before each use\\, not after updates") {
  RankShards shards{4, 4, 0};
  shards.share(ExpertDomains({{4, 4}}));
  const RankStepCase kept(shards);
  CHECK(kept.traffic(TaskKind::fetch).total() == 0);
  shards.fetched_from = 0;
  RankStepCase step(shards);
  // Rank 0 keeps all, so an expert goes to the other ranks but its owner, and is given to rank 0 alone.
  double fetched = 0, more = 0;
  const ModelSpec& spec = step.model.spec;
  int32_t last = 0;
  for (const Block& block : step.model.table.blocks()) last = std::max(last, block.layer);
  for (BlockId b = 0; b < std::ssize(step.model.table.blocks()); ++b) {
    const Block& block = step.model.table.block(b);
    if (block.kind != BlockKind::expert) continue;
    const double bytes = 4 * 3.0 * 24 * 12 * (step.costs.owners.owner(b) == 0 ? 3 : 2);
    fetched += bytes;
    if (block.layer < last)
      more += bytes;  // backward begins with the last layer's, which are there
  }
  REQUIRE(spec.has_experts(last));
  CHECK(step.traffic(TaskKind::fetch).total() == Approx(fetched + more));
  CHECK(step.traffic(TaskKind::give).total() ==
        Approx(kept.traffic(TaskKind::give).total() - fetched));
  CHECK(step.traffic(TaskKind::reduce).total() == kept.traffic(TaskKind::reduce).total());
}

TEST_CASE("rank costs: experts that travel compressed take less\\, beside their mean") {
  RankShards shards{4, 4, 0};
  shards.share(ExpertDomains({{4, 4}}));
  RankStepCase step(shards);
  const Traffic dense = step.traffic(TaskKind::give);
  step.costs.shards.wire = {.kind = ExpertWire::Kind::residual, .ratio = 20};
  const ModelSpec& spec = step.model.spec;
  const auto layers = static_cast<double>(spec.moe_layers());
  const double expert = 3.0 * 24 * 12, experts = 5;
  const double saved = (1 - 1 / 20.0) * 4 * layers * experts * expert * 3;
  const double mean = 8 * layers * expert * 4 * 3 / 4;  // each rank a quarter to three others
  CHECK(step.traffic(TaskKind::give).total() == Approx(dense.total() - saved + mean));
  CHECK(step.swept(TaskKind::give) > 0);
  // Of ranks that have nothing in common nothing travels, unless owners decode.
  shards.share(ExpertDomains({{4, 1}}));
  RankStepCase apart(shards);
  const Traffic before = apart.traffic(TaskKind::give);
  apart.costs.shards.wire = step.costs.shards.wire;
  CHECK(apart.traffic(TaskKind::give).total() == before.total());
  apart.costs.shards.wire.consistent = true;
  CHECK(apart.traffic(TaskKind::give).total() == Approx(before.total() + mean));
}

TEST_CASE("rank costs: sums read two gradients and write one") {
  // Of two ranks, the owner adds one gradient and the other clears its own.
  const RankStepCase two(RankShards{2, 2, 0});
  CHECK(two.swept(TaskKind::reduce) >= 12 * two.elements / 2);
  CHECK(two.swept(TaskKind::reduce) <= 16 * two.elements);
  // Four shards of one rank: three additions, and three gradients put aside and cleared.
  const RankStepCase four(RankShards{4, 1, 0});
  CHECK(four.swept(TaskKind::shard) == Approx((3 * 12 + 3 * 12) * four.elements));
}

TEST_CASE("rank costs: shared experts have sums of each rank of the group\\, and join them") {
  // Two shards of each of two ranks. The first is put aside and cleared, and the second added to it.
  const double each_rank = 12 + 12;
  for (const int32_t rank : {0, 1}) {
    const RankStepCase step(RankShards{4, 2, rank, true, 2});
    double dense = 0, experts = 0;
    for (BlockId id = 0; id < std::ssize(step.model.table.blocks()); ++id) {
      const Block& block = step.model.table.block(id);
      double elements = 0;
      for (TensorId t = block.begin; t < block.end; ++t) {
        elements += static_cast<double>(step.model.table.tensor(t).size());
      }
      if (block.kind != BlockKind::expert) dense += elements;
      if (block.kind == BlockKind::expert && step.costs.owners.uses(id, rank)) experts += elements;
    }
    REQUIRE(experts > 0);
    CHECK(step.swept(TaskKind::shard) ==
          Approx(each_rank * dense + (2 * each_rank + 12 + 4) * experts));
  }
  // One shard of each rank: no task ends it, and what sends gradients joins.
  for (const RankShards& shards : {RankShards{2, 2, 0, true, 2}, RankShards{4, 4, 0, true, 2}}) {
    RankStepCase step(shards);
    CHECK(step.swept(TaskKind::shard) == 0);
    const double joined = step.swept(TaskKind::reduce);
    double experts = 0;
    for (BlockId id = 0; id < std::ssize(step.model.table.blocks()); ++id) {
      if (step.model.table.block(id).kind != BlockKind::expert) continue;
      if (!step.costs.owners.uses(id, 0)) continue;
      for (TensorId t = step.model.table.block(id).begin; t < step.model.table.block(id).end; ++t) {
        experts += static_cast<double>(step.model.table.tensor(t).size());
      }
    }
    CHECK(joined >= (12 + 4) * experts);
  }
}

/// Predicted seconds of a step.
struct StepSeconds {
  double simulated = 0;
  double added = 0;    // all tasks one after the other
  double updates = 0;  // of these
};
CostRates rates_of(const RankCosts& ranks) {
  CostRates rates;
  rates.linear_forward = rates.linear_backward = {{{32, 1e9}}};
  rates.experts_forward = rates.experts_backward = {{{4, 1e9}}};
  rates.attention_forward = rates.attention_backward = rates.loss = 1e9;
  rates.row_bytes_per_s = 1e9;
  rates.norm_params_per_s = rates.update_params_per_s = 1e8;
  rates.ranks = ranks;
  return rates;
}
const std::vector<BatchWork>& batches_of_step() {
  static const std::vector<BatchWork> batches(2, full_batch(32, 32));
  return batches;
}
StepSeconds seconds_of(const RankStepCase& step, const RankCosts& ranks) {
  const CostRates rates = rates_of(ranks);
  const std::vector<BatchWork>& batches = batches_of_step();
  const ModelSpec& spec = step.model.spec;
  const auto demands = task_demands(step.schedule, batches, spec, step.model.table, rates);
  const StepCost cost = step_cost(step.schedule, batches, spec, step.model.table, rates);
  return {Simulator(step.schedule, {}).run(demands).time_s, cost.total_s(),
          cost.kinds.at("update")};
}

/// Seconds of the links alone, in all collectives of a step, and how many there are.
std::pair<double, double> links_alone(const RankStepCase& step, const RankCosts& ranks) {
  double seconds = 0, collectives = 0;
  for (const Task& task : step.schedule.tasks) {
    if (!kind_costs(task.kind).talks) continue;
    seconds += ranks.links.busy_s(traffic_of(task, ranks, step.model.table));
    ++collectives;
  }
  return {seconds, collectives};
}

TEST_CASE("rank costs: a step waits for links\\, sums and ranks on the same cores") {
  // With two shards a rank, gradients wait for the end of the last shard. Weights go under updates.
  RankStepCase step(RankShards{4, 2, 0});
  step.costs.links = RankLinks(2, LinkRate{});
  const StepSeconds alone = seconds_of(step, step.costs);
  CHECK(alone.simulated == Approx(alone.added));
  RankCosts ranks = step.costs;
  for (const double latency : {0.0, 1e-3}) {
    ranks.links = RankLinks(2, {kMega, latency});
    const StepSeconds slow = seconds_of(step, ranks);
    const auto [links, collectives] = links_alone(step, ranks);
    // Half of all gradients and weights pass each direction, layer by layer.
    CHECK(links >= 4 * step.elements / kMega);
    CHECK(slow.added == Approx(alone.added + links + latency * collectives));
    CHECK(slow.simulated <= slow.added * (1 + 1e-9));
    CHECK(slow.simulated >= (slow.added - slow.updates) * (1 - 1e-9));
  }
  CHECK(ranks.around_tasks_s() == Approx(2 * (1e-3 + beside(1, kMega))));
  ranks = step.costs;
  ranks.products = ranks.sweeps = 3;
  CHECK(seconds_of(step, ranks).added == Approx(3 * alone.added));
  ranks = step.costs;
  ranks.sweep_bytes_per_s = 1e9;  // messages of threads are copies, too
  CHECK(seconds_of(step, ranks).added > alone.added + step.swept(TaskKind::shard) / 1e9);
}

TEST_CASE("rank costs: with one shard a rank\\, gradients travel under the backward before them") {
  RankStepCase step(RankShards{2, 2, 0});
  step.costs.links = RankLinks(2, LinkRate{});
  const double alone = seconds_of(step, step.costs).simulated;
  RankCosts ranks = step.costs;
  ranks.links =
      RankLinks(2, {8 * step.elements / alone, 0});  // a rank sends as long as it computes
  const StepSeconds slow = seconds_of(step, ranks);
  CHECK(slow.simulated < 0.95 * slow.added);
  CHECK(slow.simulated > links_alone(step, ranks).first);
  CHECK(slow.simulated > alone);
  // On all ranks alike, from the head down.
  int32_t before = static_cast<int32_t>(step.model.spec.layers) + 1;
  for (const Task& task : step.schedule.tasks) {
    if (task.kind != TaskKind::reduce) continue;
    CHECK(task.layer < before);
    before = task.layer;
  }
  CHECK(before == -1);
}

TEST_CASE("rank costs: message by message\\, a step is shorter where ranks have unequal messages") {
  RankShards domains{8, 8, 0};
  domains.share(ExpertDomains({{2, 1}, {4, 4}}));
  const RankShards cases[] = {{2, 2, 0}, {4, 4, 0},          {8, 8, 0},
                              {8, 4, 0}, {4, 4, 0, true, 4}, domains};
  for (const RankShards& shards : cases) {
    const RankStepCase step(shards);
    RankCosts ranks = step.costs;
    ranks.links = RankLinks(shards.ranks, {kMega, 1e-3});
    const CostRates rates = rates_of(ranks);
    const ModelSpec& spec = step.model.spec;
    const std::vector<Collective> collectives =
        collectives_of(step.schedule, batches_of_step(), spec, step.model.table, ranks);
    const double time = simulate_messages(step.schedule, {},
                                          task_demands(step.schedule, batches_of_step(), spec,
                                                       step.model.table, rates),
                                          collectives, ranks.links)
                            .time_s;
    // Rows go among ranks that share experts alone, and all else among all.
    std::vector<double> out(static_cast<size_t>(shards.ranks)), in = out;
    size_t number = 0;
    for (const Task& task : step.schedule.tasks) {
      if (!kind_costs(task.kind).talks) continue;
      const Collective& each = collectives[number++];
      const bool ends_step = kind_costs(task.kind).ends_step;
      for (int32_t from = 0; from < shards.ranks; ++from) {
        for (int32_t to = 0; to < shards.ranks; ++to) {
          const auto sender = static_cast<size_t>(from), receiver = static_cast<size_t>(to);
          const bool meets = each.group[sender] == each.group[receiver];
          CHECK(meets == (ends_step || shards.member(from, 0) == shards.member(to, 0)));
          if (!meets) CHECK(each.traffic.bytes(from, to) == 0);
          out[sender] += each.traffic.bytes(from, to) / kMega;
          in[receiver] += each.traffic.bytes(from, to) / kMega;
        }
      }
    }
    CHECK(number == collectives.size());
    for (size_t rank = 0; rank < out.size(); ++rank) CHECK(time >= std::max(out[rank], in[rank]));
    const double together = seconds_of(step, ranks).simulated;
    if (shards.ranks == 2) CHECK(time == Approx(together));
    if (shards.expert_ranks == 1) CHECK(time <= together * (1 + 1e-9));
    if (shards.ranks == 8 && shards.expert_ranks == 1) CHECK(time < 0.97 * together);
  }
}

TEST_CASE("simulator: two collectives in flight share the links between ranks") {
  Schedule schedule;
  schedule.streams = {{"one", kHostPlace}, {"other", kHostPlace}};
  for (int32_t stream = 0; stream < 2; ++stream) {
    Task task;
    task.kind = TaskKind::reduce;
    task.stream = stream;
    schedule.tasks.push_back(task);
  }
  const std::vector<TaskDemand> demands{{.between_s = 1}, {.seconds = .5, .between_s = 2}};
  const SimulatedStep step = Simulator(schedule, {}).run(demands);
  CHECK(step.time_s == Approx(3));  // .5 alone, 1 shared, 1.5 alone
}

}  // namespace
}  // namespace hearth::test
