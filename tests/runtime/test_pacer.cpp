// Paced places: the times of tables are held on a clock that only waiting moves, and no bit changes.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "steps.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

using Catch::Approx;

/// Every reading moves the clock on by `tick`: so long does work take that is not paced.
struct FakeClock final : LinkClock {
  double tick = 0, seconds = 50;
  double now() override { return seconds += tick; }
  void sleep_until(double until) override { seconds = std::max(seconds, until); }
};

/// All tasks but those of `left_out`: `scale` seconds by the numbers below.
PlaceCosts table(double scale, std::vector<TaskKind> left_out = {}) {
  std::vector<CostEntry> entries;
  for (const TaskKind kind :
       {TaskKind::embed, TaskKind::attention, TaskKind::mlp, TaskKind::dispatch, TaskKind::experts,
        TaskKind::combine, TaskKind::head, TaskKind::norm, TaskKind::update}) {
    if (std::ranges::count(left_out, kind) > 0) continue;
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      CostEntry e;
      e.kind = kind;
      e.phase = phase;
      e.units = {1, 1001};
      const double base = scale * (1 + static_cast<double>(kind));
      e.seconds = {base, base + 1000 * scale};  // a unit more: `scale` more
      entries.push_back(e);
    }
  }
  return {std::make_shared<const CostTable>(entries, std::vector<CostLink>{}), 1, Compute::f32};
}

double seconds_at(TaskKind kind, double units) { return 1 + static_cast<double>(kind) + units - 1; }

/// Of a run of the schedule in its order on one thread.
std::vector<TaskId> in_order(const Schedule& list) {
  std::vector<TaskId> order;
  for (size_t t = 0; t < list.tasks.size(); ++t) order.push_back(static_cast<TaskId>(t));
  return order;
}

TEST_CASE("pacer: every task takes exactly the time of its table") {
  FakeClock clock;
  Steps steps;
  steps.recompute = true;
  steps.count = 1;
  steps.costs = {table(1)};
  steps.clock = &clock;
  Trace trace;
  steps.options.trace = &trace;
  const Schedule list = steps.list();
  const Outcome paced = steps.run();
  REQUIRE(trace.size() == list.tasks.size());
  const TinyModel model(tiny_config({{"mlp_only_layers", JsonArray{1}}, {"num_hidden_layers", 3}}),
                        cpu(), DType::f32);
  // What the experts of the first layer got, by micro-batch.
  const auto experts = static_cast<size_t>(model.spec.experts);
  const auto counts = [&](int32_t m) {
    std::vector<double> of(paced.counts.begin() + static_cast<long>(experts) * m,
                           paced.counts.begin() + static_cast<long>(experts) * (m + 1));
    return of;
  };
  int64_t tasks = 0;
  for (const TaskTime& time : trace) {
    const Task& task = list.tasks[static_cast<size_t>(time.task)];
    INFO(describe(task));
    const double took = time.end - time.begin;
    const double tokens = 13 + task.rows.begin;
    tasks += task.kind != TaskKind::clip;
    switch (task.kind) {
      case TaskKind::clip: CHECK(took == 0); break;
      case TaskKind::norm:
      case TaskKind::update: {
        const double parameters = task_parameters(task, model.table);
        // Above the last point in proportion.
        const double last = seconds_at(task.kind, 1001);
        CHECK(took == Approx(parameters > 1001 ? last * parameters / 1001
                                               : seconds_at(task.kind, parameters)));
        break;
      }
      case TaskKind::experts: {
        if (task.layer != 0) break;
        double sum = 0;
        // An expert's rows of all micro-batches of the task are one call.
        for (size_t e = 0; e < experts; ++e) {
          double rows = 0;
          for (int32_t m = task.rows.begin; m < task.rows.end; ++m) rows += counts(m)[e];
          if (rows > 0) sum += seconds_at(task.kind, rows);
        }
        CHECK(took == Approx(sum));
        break;
      }
      default: CHECK(took == Approx(seconds_at(task.kind, tokens)));
    }
  }
  CHECK(steps.paced.at(0).tasks == tasks);
  CHECK(steps.paced.at(0).late == 0);
  CHECK(steps.paced.at(0).late_s == 0);

  Steps plain;
  plain.recompute = true;
  plain.count = 1;
  CHECK(plain.run() == paced);
  CHECK(plain.paced.at(0).tasks == 0);
}

TEST_CASE("pacer: attention takes the time of its pairs") {
  FakeClock clock;
  Steps steps;
  steps.count = 1;
  steps.clock = &clock;
  CostEntry e;
  e.units = {1000};
  e.pairs = {10};
  e.seconds = {1};
  steps.costs = {{std::make_shared<const CostTable>(std::vector{e}, std::vector<CostLink>{}), 1,
                  Compute::f32}};
  Trace trace;
  steps.options.trace = &trace;
  const Schedule list = steps.list();
  steps.run();
  for (const TaskTime& time : trace) {
    const Task& task = list.tasks[static_cast<size_t>(time.task)];
    const bool timed = task.kind == TaskKind::attention && task.phase == Phase::forward;
    const int n = 3 + task.rows.begin;  // documents of n, 9 and 1 tokens
    const int pairs = n * (n + 1) / 2 + 45 + 1;
    CHECK(time.end - time.begin == Approx(timed ? std::max(1.0, pairs / 10.0) : 0));
  }
}

TEST_CASE("pacer: work that takes longer than the table keeps its time and is counted") {
  FakeClock clock;
  clock.tick = 0.5;  // every task reads the clock before and after its work
  Steps steps;
  steps.count = 2;
  steps.clock = &clock;
  steps.costs = {table(0)};
  const Outcome late = steps.run();
  const PacedTasks& paced = steps.paced.at(0);
  CHECK(paced.tasks > 0);
  CHECK(paced.late == paced.tasks);
  CHECK(paced.late_s == Approx(0.5 * static_cast<double>(paced.late)));
  // A task of exactly the table's time is not late; the counts are those of the last step.
  steps.costs = {table(0, {TaskKind::embed, TaskKind::attention, TaskKind::mlp, TaskKind::dispatch,
                           TaskKind::experts, TaskKind::combine, TaskKind::head, TaskKind::norm})};
  CHECK(steps.run() == late);
  const Schedule list = steps.list();
  CHECK(steps.paced.at(0).tasks ==
        std::ranges::count(list.tasks, TaskKind::update, [](const Task& t) { return t.kind; }));
  steps.costs = {table(0.5 / (1 + static_cast<double>(TaskKind::norm)))};
  steps.run();
  CHECK(steps.paced.at(0).late == 0);
  CHECK(steps.run() == late);
}

TEST_CASE("pacer: each place has its own table, and copies are not held") {
  const Outcome expected = Steps().run();
  for (const bool host_paced : {false, true}) {
    FakeClock clock;
    Steps steps;
    steps.clock = &clock;
    steps.places = {virtual_devices(1), [](ParameterTable& table) {
                      place_blocks(table, {1, kHostPlace});
                    }};
    steps.costs = {host_paced ? table(1) : PlaceCosts{}, host_paced ? PlaceCosts{} : table(1)};
    const Schedule list = steps.list();
    steps.options.order = in_order(list);
    Trace trace;
    steps.options.trace = &trace;
    CHECK(steps.run() == expected);
    const size_t paced = host_paced ? 0 : 1;
    int64_t tasks = 0;
    for (const TaskTime& time : trace) {
      const Task& task = list.tasks[static_cast<size_t>(time.task)];
      const bool held = task.place == static_cast<Place>(paced) && task.kind != TaskKind::copy &&
                        task.kind != TaskKind::clip;
      CHECK((time.end - time.begin > 0) == held);
      tasks += held;
    }
    CHECK(tasks > 0);
    CHECK(steps.paced.at(paced).tasks == tasks);
    CHECK(steps.paced.at(1 - paced).tasks == 0);
  }
}

TEST_CASE("pacer: streams that run beside each other give the same bits") {
  const Outcome expected = Steps().run();
  Steps steps;
  steps.places = {virtual_devices(2), [](ParameterTable& table) { place_at_random(table, 3, 5); }};
  steps.costs = {table(1e-7), table(2e-7), table(0)};
  CHECK(steps.run() == expected);
  CHECK(steps.paced.at(2).late == steps.paced.at(2).tasks);
}

TEST_CASE("pacer: on the real clock no task ends before its time") {
  Steps steps;
  steps.count = 1;
  steps.costs = {table(2e-5)};
  Trace trace;
  steps.options.trace = &trace;
  const Schedule list = steps.list();
  steps.run();
  for (const TaskTime& time : trace) {
    const Task& task = list.tasks[static_cast<size_t>(time.task)];
    if (task.kind == TaskKind::clip || task.rows.none()) continue;
    CHECK(time.end - time.begin >= 2e-5 * (1 + static_cast<double>(task.kind)));
  }
}

}  // namespace
}  // namespace hearth::test
