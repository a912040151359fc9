// The least time of streams that divide work: exact where speeds have one ratio, never above the best.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "plan/divided_bound.h"
#include "plan/task_costs.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

using Catch::Approx;

DividedWork both(double first, double second) { return {{{0, first}, {1, second}}}; }

TEST_CASE("divided bound: what is fixed, and an exact division where speeds have one ratio") {
  const std::vector<double> fixed{3, 1};
  CHECK(least_time_of_longest(fixed, {}) == 3);
  CHECK(least_time_of_longest({}, {}) == 0);
  // Stream 1 takes 2 of the work before stream 0 does any, then both do half of the rest.
  CHECK(least_time_of_longest(fixed, std::vector{both(1, 1)}) == 3);
  CHECK(least_time_of_longest(fixed, std::vector{both(4, 4)}) == Approx(4));
  // A stream that is nine times faster takes nine tenths.
  const std::vector<double> none{0, 0};
  CHECK(least_time_of_longest(none, std::vector{both(1, 9)}) == Approx(.9));
  CHECK(least_time_of_longest(none, std::vector{both(1, 9), both(2, 18)}) == Approx(2.7));
  // A place whose time is not known may take all of it.
  CHECK(least_time_of_longest(none, std::vector{both(5, 0)}) == 0);
  CHECK(least_time_of_longest(none, std::vector<DividedWork>{{{{1, 5}}}}) == 5);
}

TEST_CASE("divided bound: never above the best division of any work") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> draw(0, 1);
  for (int i = 0; i < 300; ++i) {
    const std::vector<double> fixed{draw(random), draw(random)};
    const std::vector<DividedWork> work{both(draw(random), draw(random)),
                                        both(draw(random), draw(random))};
    double best = 1e30;
    constexpr int kParts = 60;
    for (int a = 0; a <= kParts; ++a) {
      for (int b = 0; b <= kParts; ++b) {
        const double p = static_cast<double>(a) / kParts, q = static_cast<double>(b) / kParts;
        const auto at = [&](size_t s) {
          return fixed[s] + (s == 0 ? p : 1 - p) * work[0].shares[s].seconds +
                 (s == 0 ? q : 1 - q) * work[1].shares[s].seconds;
        };
        best = std::min(best, std::max(at(0), at(1)));
      }
    }
    const double bound = least_time_of_longest(fixed, work);
    CHECK(bound <= best + 1e-12);
    CHECK(bound >= std::max(fixed[0], fixed[1]));
  }
}

TEST_CASE("divided bound: of a step whose router sends all rows to the fast place") {
  register_all_op_sets();
  const TinyModel model(tiny_config(), find_op_set("cpu"), DType::f32, 1, {},
                        {virtual_devices(2), [](ParameterTable& table) {
                           for (BlockId b = 0; b < std::ssize(table.blocks()); ++b) {
                             const Block& block = table.block(b);
                             if (block.kind == BlockKind::expert)
                               table.set_place(b, block.expert < 2 ? 1 : 2);
                           }
                         }});
  const Schedule list = single_train_schedule(model.input(32, 32, 2), 2, false);
  const auto experts_take = [](double seconds) {
    CostEntry entry;
    entry.kind = TaskKind::experts;
    entry.units = {1, 1 << 20};
    entry.seconds = {seconds, seconds * (1 << 20)};
    CostEntry backward = entry;
    backward.phase = Phase::backward;
    return PlaceCosts{
        std::make_shared<CostTable>(std::vector{entry, backward}, std::vector<CostLink>{}), 1,
        Compute::f32};
  };
  const std::vector<BatchWork> batches(2, full_batch(32, 32));
  const std::vector<PlaceCosts> places{
      {std::make_shared<CostTable>(), 1, Compute::f32}, experts_take(1e-6), experts_take(1e-3)};
  const StepBound bound =
      step_bound_by_tables(list, batches, model.spec, model.table, {1e12, 1e12}, places);
  // All rows at the fast place: one microsecond for each row, forward and backward.
  double rows = 0;
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::experts || task.place != 1) continue;
    rows += 32.0 * task.rows.count() * static_cast<double>(model.spec.experts_per_token);
  }
  CHECK(bound.total_s() <= rows * 1e-6);
  CHECK(bound.total_s() > .99 * rows * 1e-6);
}

}  // namespace
}  // namespace hearth::test
