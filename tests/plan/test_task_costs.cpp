// What cost tables say about tasks: which entry, which size, predictions and bounds.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "plan/cost_model.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

using Catch::Approx;

CostEntry entry(TaskKind kind, Phase phase, std::vector<int64_t> units,
                std::vector<double> seconds) {
  CostEntry e;
  e.kind = kind;
  e.phase = phase;
  e.units = std::move(units);
  e.seconds = std::move(seconds);
  return e;
}

PlaceCosts costs(std::vector<CostEntry> entries) {
  return {std::make_shared<const CostTable>(std::move(entries), std::vector<CostLink>{}), 1,
          Compute::f32};
}

/// Every kind in both directions: `base` seconds, and a nanosecond for each unit.
PlaceCosts full_costs(double base) {
  std::vector<CostEntry> entries;
  for (const TaskKind kind :
       {TaskKind::embed, TaskKind::attention, TaskKind::mlp, TaskKind::dispatch, TaskKind::experts,
        TaskKind::combine, TaskKind::head, TaskKind::norm, TaskKind::update}) {
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      entries.push_back(entry(kind, phase, {1, 1000000}, {base, base + 1e-3}));
    }
  }
  return costs(std::move(entries));
}

Task task_of(TaskKind kind, Phase phase = Phase::forward) {
  Task task;
  task.kind = kind;
  task.phase = phase;
  task.layer = 0;
  return task;
}

TEST_CASE("task costs: an entry is chosen by kind, phase, compute type and shape") {
  const ModelSpec& spec = shared_tiny_model().spec;
  CostEntry wide = entry(TaskKind::experts, Phase::forward, {1}, {9});
  wide.shape = CostShape{spec.hidden * 64, spec.expert_width * 64};
  CostEntry fits = entry(TaskKind::experts, Phase::forward, {1}, {1});
  fits.shape = CostShape{spec.hidden, spec.expert_width};
  CostEntry bf16 = entry(TaskKind::head, Phase::forward, {1}, {1});
  bf16.dtype = Compute::bf16;
  const PlaceCosts table = costs({wide, fits, bf16});
  const auto found = [&](const PlaceCosts& at, TaskKind kind, Phase phase = Phase::forward) {
    const CostEntry* e = cost_entry(at, task_of(kind, phase), spec);
    return e == nullptr ? -1 : e->seconds[0];
  };
  CHECK(found(table, TaskKind::experts) == 1);
  CHECK(found(table, TaskKind::experts, Phase::recompute) == 1);
  CHECK(found(table, TaskKind::experts, Phase::backward) == -1);
  CHECK(found(table, TaskKind::head) == -1);
  CHECK(found({table.table, 1, Compute::bf16}, TaskKind::head) == 1);
  CHECK(found(table, TaskKind::clip) == -1);
  CHECK(found(table, TaskKind::copy) == -1);
  CHECK(found({}, TaskKind::experts) == -1);
  // The cores of the place choose, too.
  CostEntry one = entry(TaskKind::embed, Phase::forward, {1}, {4}), eight = one;
  one.cores = 1;
  eight.cores = 8;
  eight.seconds = {2};
  PlaceCosts by_cores = costs({one, eight});
  CHECK(found(by_cores, TaskKind::embed) == 4);
  by_cores.cores = 8;
  CHECK(found(by_cores, TaskKind::embed) == 2);
}

TEST_CASE("task costs: the shapes of tasks") {
  const ModelSpec& spec = shared_tiny_model().spec;
  const auto width = [&](TaskKind kind) {
    const CostShape shape = cost_shape(task_of(kind), spec);
    CHECK(shape.hidden == spec.hidden);
    return shape.width;
  };
  CHECK(width(TaskKind::experts) == spec.expert_width);
  CHECK(width(TaskKind::mlp) == spec.dense_width);
  CHECK(width(TaskKind::attention) == spec.heads * spec.head_dim);
  CHECK(width(TaskKind::head) == spec.vocabulary);
  CHECK(width(TaskKind::embed) == spec.vocabulary);
  CHECK(width(TaskKind::combine) == spec.hidden);
  CHECK(width(TaskKind::update) == spec.hidden);
  ModelSpec shared = spec;
  shared.shared_width = 7;
  CHECK(cost_shape(task_of(TaskKind::mlp), shared).width ==
        (shared.moe[0] ? 7 : shared.dense_width));
}

TEST_CASE("task costs: tasks that a table does not time are named once") {
  const TinyModel& model = shared_tiny_model();
  const Schedule list = single_train_schedule(model.input(32, 32, 2), 2, true);
  CHECK(untimed_tasks({}, kHostPlace, list, model.spec).empty());
  CHECK(untimed_tasks(full_costs(0), kHostPlace, list, model.spec).empty());
  CHECK(untimed_tasks(costs({}), 1, list, model.spec).empty());  // nothing runs there
  std::vector<CostEntry> entries = full_costs(0).table->entries();
  std::erase_if(entries, [](const CostEntry& e) {
    return e.kind == TaskKind::norm || (e.kind == TaskKind::head) ||
           (e.kind == TaskKind::attention && e.phase == Phase::backward);
  });
  CHECK(untimed_tasks(costs(entries), kHostPlace, list, model.spec) ==
        "head forward, attention backward, norm");
}

TEST_CASE("task costs: pairs of queries and keys, by counting") {
  const std::vector<std::vector<int32_t>> queries = {{0, 3, 8}, {0, 1}, {0, 4, 4, 5}, {0, 2}};
  const std::vector<std::vector<int32_t>> keys = {{0, 3, 8}, {0, 9}, {0, 6, 8, 9}, {0, 2}};
  for (size_t i = 0; i < queries.size(); ++i) {
    for (const int64_t window : {0, 1, 2, 5, 100}) {
      int64_t count = 0;
      for (size_t s = 0; s + 1 < queries[i].size(); ++s) {
        const int64_t q = queries[i][s + 1] - queries[i][s], k = keys[i][s + 1] - keys[i][s];
        for (int64_t query = 0; query < q; ++query) {
          const int64_t sees = k - q + query + 1;
          count += window > 0 ? std::min(window, sees) : sees;
        }
      }
      CHECK(pairs_of(queries[i], keys[i], window) == static_cast<double>(count));
    }
  }
  // The work of a batch without a past is the same.
  const std::vector<int32_t> offsets{0, 5, 12};
  for (const int64_t window : {0, 3}) {
    CHECK(pairs_of(offsets, offsets, window) == work_of(offsets, 1).pairs(window));
  }
}

TEST_CASE("task costs: experts are the sum of their calls") {
  const CostEntry e = entry(TaskKind::experts, Phase::forward, {1, 11}, {1, 2});
  CHECK(experts_seconds(e, std::vector<int32_t>{0, 0, 1, 12, 12}) == Approx(1 + 2));
  CHECK(experts_seconds(e, std::vector<int32_t>{0, 0}) == 0);
  // Three micro-batches: 1 + 4 + 6 rows of the first expert are one call, and so are 0 + 1 + 0.
  const std::vector<int32_t> several{0, 1, 1, -1, 7, 11, 12, -1, 2, 8, 8};
  CHECK(experts_seconds(e, std::span(several).first(3), 3, 4) == Approx(2 + 1));

  const TinyModel& model = shared_tiny_model();
  const Task task = task_of(TaskKind::experts);
  const auto predicted = [&](double tokens) {
    return predicted_seconds(e, task, {tokens, tokens, {}}, model.spec, model.table);
  };
  const auto experts = static_cast<double>(model.spec.experts);
  const auto k = static_cast<double>(model.spec.experts_per_token);
  CHECK(predicted(11 * experts / k) == Approx(2 * experts));
  CHECK(predicted(1) == Approx(k));  // one row each
  CHECK(predicted(0) == 0);
}

TEST_CASE("task costs: a step with tables takes their times, and no rate is read") {
  const TinyModel& model = shared_tiny_model();
  const Schedule list = single_train_schedule(model.input(32, 32, 2), 2, true);
  const std::vector<BatchWork> batches(2, full_batch(32, 32));
  CostRates rates;
  rates.tables = {full_costs(1)};
  const StepCost cost = step_cost(list, batches, model.spec, model.table, rates);
  double parameters = 0;
  for (const Tensor& t : model.table.tensors()) parameters += static_cast<double>(t.size());
  CHECK(cost.kinds.at("norm") == Approx(1).margin(1e-3));
  const auto updates = static_cast<double>(
      std::ranges::count(list.tasks, TaskKind::update, [](const Task& t) { return t.kind; }));
  CHECK(cost.kinds.at("update") > updates);
  CHECK(cost.kinds.at("update") < updates + 1.0e-9 * parameters + 1e-3);
  CHECK(cost.kinds.at("clip") == 0);
  CHECK(cost.memory_s == 0);
  CHECK(cost.link_s == 0);
  CHECK(std::isfinite(cost.total_s()));
  // Attention is read at its pairs if the entry has them.
  CostEntry attention = entry(TaskKind::attention, Phase::forward, {32}, {1});
  attention.pairs = {32 * 33 / 4};  // half of those of a full batch
  const Task task = task_of(TaskKind::attention);
  CHECK(predicted_seconds(attention, task, batches[0], model.spec, model.table) == Approx(2));
  // Without the entry a task costs nothing.
  rates.tables = {costs({})};
  CHECK(step_cost(list, batches, model.spec, model.table, rates).total_s() == 0);
}

TEST_CASE("task costs: a frozen block takes no time to update") {
  TinyModel model(tiny_config(), find_op_set("cpu"), DType::f32);
  for (Tensor& t : model.table.tensors()) t.trainable = false;
  const Schedule list = single_train_schedule(model.input(32, 32, 1), 1, false);
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::update) continue;
    CHECK(task_parameters(task, model.table) == 0);
    CHECK(predicted_seconds(full_costs(1).table->entries().back(), task, {}, model.spec,
                            model.table) == 0);
  }
}

TEST_CASE("task costs: the bound is the slowest place, whatever experts rows go to") {
  register_all_op_sets();
  const Placement apart{1, kHostPlace};
  const TinyModel model(
      tiny_config(), find_op_set("cpu"), DType::f32, 1, {},
      {virtual_devices(1), [&](ParameterTable& table) { place_blocks(table, apart); }});
  const Schedule list = single_train_schedule(model.input(32, 32, 2), 2, true);
  const std::vector<BatchWork> batches(2, full_batch(32, 32));
  const MachineRates rates{1e9, 1e9};
  const auto bound = [&](std::vector<PlaceCosts> places) {
    return step_bound_by_tables(list, batches, model.spec, model.table, rates, places);
  };
  double parameters = 0;
  for (const Tensor& t : model.table.tensors()) parameters += static_cast<double>(t.size());
  const StepBound machine = step_bound(list, batches, rates, static_cast<int64_t>(parameters));
  const StepBound none = bound({{}, {}});
  CHECK(none.flops == Approx(machine.flops));
  CHECK(none.total_s() < machine.total_s());  // two places at the same time
  CHECK(none.total_s() > machine.total_s() / 2);

  // A slow device, then slow experts.
  const StepBound device = bound({full_costs(0), full_costs(1)});
  const StepBound host = bound({full_costs(5), full_costs(1e-3)});
  const auto count = [&](auto&& matches) {
    return static_cast<double>(std::ranges::count_if(list.tasks, matches));
  };
  CHECK(device.total_s() == Approx(count([](const Task& t) {
                              return t.place == 1 && t.phase != Phase::recompute &&
                                     t.kind != TaskKind::copy && t.kind != TaskKind::clip;
                            })).epsilon(0.01));
  CHECK(device.update_s == Approx(count([](const Task& t) {
                             return t.place == 1 &&
                                    (t.kind == TaskKind::norm || t.kind == TaskKind::update);
                           })).epsilon(0.01));
  CHECK(host.total_s() > device.total_s() / 100);

  // No division of the rows takes less than the bound: a table where one call is cheapest.
  const CostEntry flat = entry(TaskKind::experts, Phase::forward, {1, 64}, {1, 1.5});
  CostEntry steep = entry(TaskKind::experts, Phase::backward, {1, 4, 64}, {1, 2, 64});
  const StepBound experts = bound({costs({flat, steep}), costs({})});
  double least = 0;
  const auto k = static_cast<int32_t>(model.spec.experts_per_token);
  const auto all = static_cast<int32_t>(model.spec.experts);
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::experts || task.phase == Phase::recompute) continue;
    const CostEntry& e = task.phase == Phase::forward ? flat : steep;
    std::vector<int32_t> few{0}, even{0};
    const int32_t tokens = 32 * task.rows.count();
    for (int32_t i = 0; i < all; ++i) few.push_back(std::min(tokens * k, tokens * (i + 1)));
    for (int32_t i = 0; i < all; ++i) even.push_back(tokens * k * (i + 1) / all);
    least += std::min(experts_seconds(e, few), experts_seconds(e, even));
  }
  CHECK(experts.total_s() > 0);
  CHECK(experts.total_s() <= least);
}

}  // namespace
}  // namespace hearth::test
