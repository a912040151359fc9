// The order of a step with zebra: simulated times, the preconditions of Theorem 1, orders that are
// faster where they fail. Against exhaustive search over small cases.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "plan/least_zebra_time.h"
#include "plan/zebra/order_search.h"
#include "plan/zebra/theorem_1.h"
#include "plan/zebra_cases.h"

namespace hearth::test {
namespace {

using Catch::Approx;

/// As the preconditions ask for: layers alike, attention the longest.
ZebraTimes that_holds(ZebraRandom& random, int32_t layers) {
  const ZebraTime attention = random.time(1, 3), experts = random.time(0.1, 1);
  const double out = random.between(0, 0.8), back = random.between(0, 0.8);
  ZebraTimes times = ZebraCase{.layers = layers, .attention = attention}.times();
  const auto near = [&](ZebraTime time) {
    return ZebraTime{time.forward * random.between(0.8, 1), time.backward * random.between(0.8, 1)};
  };
  for (ZebraTime& stage : times.stages) stage = near(attention);
  times.stages.back() = random.time(0.6, 2);
  for (ZebraLayerTimes& of : times.layers) {
    of.expert_there = near({experts.forward / 6 * 0.8, experts.backward / 6 * 0.8});
    of.out = {out, random.between(0, out)};
    of.back = {back, random.between(0, back)};
  }
  return times;
}

}  // namespace

TEST_CASE("zebra order: Theorem 1 of two layers and two micro-batches\\, task by task") {
  const auto f = Phase::forward, b = Phase::backward;
  const ZebraOrder expected = {
      {false, f, 0, 0}, {false, f, 0, 1}, {true, f, 0, 0}, {true, f, 0, 1},  {false, f, 1, 0},
      {false, f, 1, 1}, {true, f, 1, 0},  {true, f, 1, 1}, {false, f, 2, 0}, {false, b, 2, 0},
      {false, f, 2, 1}, {false, b, 2, 1}, {true, b, 1, 0}, {true, b, 1, 1},  {false, b, 1, 0},
      {false, b, 1, 1}, {true, b, 0, 0},  {true, b, 0, 1}, {false, b, 0, 0}, {false, b, 0, 1}};
  CHECK(theorem_1_order(2, 2) == expected);
  CHECK(is_zebra_order(expected, 2, 2));
}

TEST_CASE("zebra order: what is none is told") {
  const ZebraOrder right = theorem_1_order(2, 2);
  CHECK_FALSE(is_zebra_order(right, 2, 3));
  CHECK_FALSE(is_zebra_order(right, 3, 2));
  CHECK_FALSE(is_zebra_order({}, 2, 2));
  for (size_t i = 0; i + 1 < right.size(); ++i) {
    ZebraOrder swapped = right;
    std::swap(swapped[i], swapped[i + 1]);
    const ZebraTask &one = right[i], &two = right[i + 1];
    // Tasks of different stages of different micro-batches may change places, neighbours may not.
    const bool same_stage =
        one.experts == two.experts && one.phase == two.phase && one.at == two.at;
    const bool follows = one.micro_batch == two.micro_batch;
    CHECK(is_zebra_order(swapped, 2, 2) == (!same_stage && !follows));
    ZebraOrder less = right;
    less.erase(less.begin() + static_cast<int64_t>(i));
    CHECK_FALSE(is_zebra_order(less, 2, 2));
  }
  ZebraOrder twice = right;
  twice.push_back(right.back());
  CHECK_FALSE(is_zebra_order(twice, 2, 2));
}

TEST_CASE("zebra order: Figure 6 of the paper") {
  const ZebraTimes times = figure_6();
  const ZebraOrder order = forward_of(theorem_1_order(3, 3), 3);
  const ZebraRun none = simulate_zebra(times, order),
                 moved = simulate_zebra(times, order, {0, 1, 1});
  CHECK(none.time_s == Approx(39));
  CHECK(none.attention_s == Approx(27));
  CHECK(none.attention_s / none.experts_s == Approx(0.75));  // utilisation while both are busy
  CHECK(moved.time_s == Approx(35));
  const double bubbles = none.time_s - none.attention_s, left = moved.time_s - moved.attention_s;
  CHECK(left / bubbles == Approx(0.4));                                  // 60 % less
  CHECK(moved.time_s / none.time_s == Approx(1 - 0.1026).margin(1e-4));  // 10 % less
  // With the first layer, too, expert ranks wait for attention: 6 % of the time.
  const double there = experts_there(times, 0, 1).forward;
  const double here = times.stages[0].forward + experts_here(times, 0, 1).forward;
  CHECK(1 - there / here == Approx(0.06).margin(0.004));
}

TEST_CASE("zebra order: one task after the other where nothing overlaps") {
  ZebraCase c{
      .layers = 3, .attention = {2, 3}, .there = {5, 7}, .out = {0.5, 0.25}, .back = {1, 2}};
  const ZebraRun run = simulate_zebra(c.times(), theorem_1_order(3, 1));
  CHECK(run.time_s == Approx(4 * 5 + 3 * (12 + 0.75 + 3)));
  CHECK(run.time_s == Approx(zebra_bound(c.times(), 1)));
  CHECK(run.attention_s == Approx(20));
  CHECK(run.experts_s == Approx(36));
}

TEST_CASE("zebra order: dependencies\\, streams and bounds hold in all simulated orders") {
  ZebraRandom random(1);
  for (int i = 0; i < 60; ++i) {
    const int32_t layers = random.integer(1, 4), micro_batches = random.integer(1, 5);
    const ZebraTimes times = random.any(layers).times();
    ExpertShift shift;
    for (int32_t layer = 0; i % 2 == 1 && layer < layers; ++layer) {
      shift.push_back(random.integer(0, 3));
    }
    const FoundOrder found = find_zebra_order(times, micro_batches, shift);
    for (const ZebraOrder& order : {theorem_1_order(layers, micro_batches), found.order}) {
      REQUIRE(is_zebra_order(order, layers, micro_batches));
      const ZebraRun run = simulate_zebra(times, order, shift);
      CHECK(run.time_s >= zebra_bound(times, micro_batches, shift) * (1 - 1e-12));
      double free[2] = {0, 0};
      std::map<std::pair<int32_t, int32_t>, double> done;  // attention of a phase and stage
      for (size_t t = 0; t < order.size(); ++t) {
        CHECK(run.begin[t] >= free[order[t].experts ? 1 : 0] - 1e-12);
        free[order[t].experts ? 1 : 0] = run.end[t];
        CHECK(run.end[t] <= run.time_s);
      }
      for (size_t t = 0; t < order.size(); ++t) {  // each behind what it needs, with its exchange
        const ZebraTask& task = order[t];
        if (!task.experts) continue;
        const bool forward = task.phase == Phase::forward;
        const ZebraLayerTimes& of = times.layers[static_cast<size_t>(task.at)];
        const auto at = [&](int32_t stage) {
          const auto found_at =
              std::ranges::find(order, ZebraTask{false, task.phase, stage, task.micro_batch});
          return static_cast<size_t>(found_at - order.begin());
        };
        const size_t sends = at(forward ? task.at : task.at + 1);
        const size_t gets = at(forward ? task.at + 1 : task.at);
        CHECK(run.begin[t] >=
              run.end[sends] + (forward ? of.out.forward : of.out.backward) - 1e-12);
        CHECK(run.begin[gets] >=
              run.end[t] + (forward ? of.back.forward : of.back.backward) - 1e-12);
      }
    }
    CHECK(found.time_s <= found.theorem_1_s);
    CHECK(found.time_s == Approx(simulate_zebra(times, found.order, shift).time_s));
  }
}

TEST_CASE("zebra order: experts of attention ranks follow the attention of their layer") {
  ZebraRandom random(2);
  for (int i = 0; i < 30; ++i) {
    const int32_t layers = random.integer(1, 3), micro_batches = random.integer(2, 4);
    const ExpertShift shift(static_cast<size_t>(layers), random.integer(1, 3));
    const FoundOrder found = find_zebra_order(random.any(layers).times(), micro_batches, shift);
    for (size_t t = 0; t < found.order.size(); ++t) {
      const ZebraTask& task = found.order[t];
      if (!task.experts) continue;
      const int32_t stage = task.phase == Phase::forward ? task.at : task.at + 1;
      for (size_t later = t; later < found.order.size(); ++later) {
        const ZebraTask& other = found.order[later];
        CHECK((other.experts || other.phase != task.phase || other.at != stage));
      }
    }
  }
}

TEST_CASE("zebra order: where the preconditions hold\\, no order is faster than Theorem 1") {
  ZebraRandom random(3);
  int proved = 0;
  for (const auto& [layers, micro_batches] : {std::pair{1, 3}, {2, 3}, {3, 3}, {2, 4}}) {
    for (int i = 0; i < 60; ++i) {
      const ZebraTimes times = that_holds(random, layers);
      const Theorem1 theorem = check_theorem_1(times);
      INFO(theorem.fails.size());
      REQUIRE(theorem.holds());
      const double own = simulate_zebra(times, theorem_1_order(layers, micro_batches)).time_s;
      const auto least = LeastZebraTime(times, micro_batches).least(own * 2, 50'000);
      if (!least) continue;
      ++proved;
      CHECK(*least == Approx(own).epsilon(1e-9));
    }
  }
  CHECK(proved > 200);
}

TEST_CASE("zebra order: where they fail\\, orders are faster\\, and the search finds most of it") {
  ZebraRandom random(4);
  double of_theorem = 0, of_search = 0;
  int beaten = 0, cases = 0;
  for (int i = 0; i < 80; ++i) {
    ZebraCase c = random.any(2);
    ZebraTimes times = c.times();
    if (i % 2 == 0) times.stages.back() = random.time(0.1, 2);
    const FoundOrder found = find_zebra_order(times, 3);
    const auto least = LeastZebraTime(times, 3).least(found.theorem_1_s * 1.001);
    if (!least) continue;
    ++cases;
    const double best = std::min(*least, found.theorem_1_s);
    CHECK(found.time_s >= best * (1 - 1e-9));
    of_theorem += found.theorem_1_s / best - 1;
    of_search += found.time_s / best - 1;
    if (best < found.theorem_1_s * (1 - 1e-6)) {
      ++beaten;
      CHECK_FALSE(check_theorem_1(times).holds());
    }
  }
  CHECK(cases > 70);
  CHECK(beaten > 15);
  CHECK(of_search < of_theorem / 2);
}

TEST_CASE("zebra order: Theorem 1 says which precondition fails\\, with the times") {
  const ZebraCase right{
      .layers = 2, .attention = {1, 2}, .there = {1, 2}, .out = {1, 1}, .back = {0.5, 0.5}};
  const auto fails = [](const ZebraTimes& times, const ExpertShift& shift = {}) {
    return check_theorem_1(times, shift).fails;
  };
  CHECK(fails(right.times()).empty());

  ZebraCase slow = right;
  slow.there = {1, 3e0};
  REQUIRE(fails(slow.times()).size() == 1);
  CHECK(fails(slow.times())[0] ==
        "experts take longer than attention: experts backward of layer 0 (3e+03 ms), and attention "
        "backward of layer 0 (2e+03 ms)");

  slow = right;
  slow.back = {0.5, 1.5};
  REQUIRE(fails(slow.times()).size() == 1);
  CHECK(
      fails(slow.times())[0].starts_with("rows travel longer than attention takes: rows back "
                                         "backward of layer 0"));

  ZebraTimes uneven = right.times();
  uneven.stages[1].forward = 1.3;
  REQUIRE(fails(uneven).size() == 1);
  CHECK(fails(uneven)[0] ==
        "layers differ by more than a quarter: attention forward of layer 1 (1.3e+03 ms), and "
        "attention forward of layer 0 (1e+03 ms)");

  // The last stage counts with both phases.
  ZebraTimes head = right.times();
  head.stages.back() = {2, 0};
  CHECK(fails(head).empty());
  head.stages.back() = {0.5, 0};
  CHECK(fails(head).size() == 4);  // shorter than experts and than rows, both ways

  const auto moved = fails(right.times(), {0, 1});
  REQUIRE_FALSE(moved.empty());
  CHECK(moved.back() == "attention ranks compute experts, too");
}

}  // namespace hearth::test
