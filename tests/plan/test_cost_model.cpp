// The cost model: rates to times, by hand on small numbers.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "plan/cost_model.h"
#include "plan/step_use.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

using Catch::Approx;

CostRates rates() {
  CostRates r;
  r.linear_forward = {{{32, 1e6}}};
  r.linear_backward = {{{32, 2e6}}};
  r.experts_forward = {{{4, 1e6}, {16, 3e6}}};
  r.experts_backward = {{{4, 1e6}}};
  r.attention_forward = r.attention_backward = 1e6;
  r.loss = 1e6;
  r.row_bytes_per_s = 1e9;
  r.norm_params_per_s = 1e6;
  r.update_params_per_s = 5e5;
  return r;
}

double parameters(const ParameterTable& table) {
  double n = 0;
  for (const Tensor& t : table.tensors()) n += static_cast<double>(t.size());
  return n;
}

TEST_CASE("cost model: a rate curve is linear in the logarithm and constant outside") {
  const RateCurve curve{{{4, 10}, {16, 30}, {64, 40}}};
  CHECK(curve.at(1) == 10);
  CHECK(curve.at(4) == 10);
  CHECK(curve.at(8) == Approx(20));
  CHECK(curve.at(16) == 30);
  CHECK(curve.at(32) == Approx(35));
  CHECK(curve.at(1000) == 40);
  CHECK_THROWS_AS(RateCurve{}.at(1), std::logic_error);
}

TEST_CASE("cost model: pairs of packed documents, with and without a window") {
  const int32_t offsets[] = {0, 3, 8};
  const BatchWork work = work_of(offsets, 5);
  CHECK(work.tokens == 8);
  CHECK(work.pairs(0) == 3 * 4 / 2 + 5 * 6 / 2);
  // Windows of two: 1 + 2 + 2, and 1 + 2 + 2 + 2 + 2.
  CHECK(work.pairs(2) == 5 + 9);
  CHECK(work.pairs(100) == work.pairs(0));
  CHECK(full_batch(64, 16).pairs(0) == 4 * 16 * 17 / 2);
}

TEST_CASE("cost model: a step is the sum of its tasks, by phase and by kind") {
  const Schedule list = single_train_schedule(shared_tiny_model().input(32, 32, 2), 2, true);
  const std::vector<BatchWork> batches(2, full_batch(32, 32));
  const StepCost cost =
      step_cost(list, batches, shared_tiny_model().spec, shared_tiny_model().table, rates());
  double phases = 0, kinds = 0, tasks = 0;
  for (const auto& [name, seconds] : cost.phases) phases += seconds;
  for (const auto& [name, seconds] : cost.kinds) kinds += seconds;
  for (const Task& task : list.tasks) {
    tasks += task_cost(list, task, work_of(task.rows, batches), shared_tiny_model().spec,
                       shared_tiny_model().table, rates())
                 .total_s();
  }
  CHECK(phases == Approx(cost.total_s()));
  CHECK(kinds == Approx(cost.total_s()));
  CHECK(tasks == Approx(cost.total_s()));
  CHECK(cost.phases.at("recompute") > 0);
  // At one place, a step takes the sum.
  const SimulatedStep step = Simulator(list, {}).run(
      task_demands(list, batches, shared_tiny_model().spec, shared_tiny_model().table, rates()));
  CHECK(step.time_s == Approx(cost.total_s()));

  // Norm and update go over all parameters once.
  const double n = parameters(shared_tiny_model().table);
  CHECK(cost.kinds.at("norm") == Approx(n / 1e6));
  CHECK(cost.kinds.at("update") == Approx(n / 5e5));
  CHECK(cost.memory_s > cost.phases.at("update"));
}

TEST_CASE("cost model: experts run at the rate of their rows") {
  const Schedule list = single_train_schedule(shared_tiny_model().input(40, 40, 1), 1, false);
  const ModelSpec& spec = shared_tiny_model().spec;
  const BatchWork batch = full_batch(40, 40);  // 40 x 2 / 5 = 16 rows an expert
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::experts || task.phase != Phase::forward) continue;
    const double flops = 6.0 * 2 * static_cast<double>(spec.hidden * spec.expert_width) * 40;
    CHECK(flops_of(task.work, batch) == Approx(flops));
    CHECK(task_cost(list, task, batch, spec, shared_tiny_model().table, rates()).compute_s ==
          Approx(flops / 3e6));
  }
}

TEST_CASE("cost model: a copy takes the latency of its direction and its bytes over the rate") {
  register_all_op_sets();
  const Placement experts_apart{1, kHostPlace};
  const TinyModel model(
      tiny_config(), find_op_set("cpu"), DType::f32, 1, {},
      {virtual_devices(1), [&](ParameterTable& table) { place_blocks(table, experts_apart); }});
  const Schedule list = single_train_schedule(model.input(40, 40, 1), 1, false);
  const BatchWork batch = full_batch(30, 30);  // fewer than the bound
  CostRates r = rates();
  const auto cost_of = [&](Value value, StreamUse use) {
    for (const Task& task : list.tasks) {
      if (task.kind != TaskKind::copy || task.uses[0].port.value != value ||
          list.streams[static_cast<size_t>(task.stream)].use != use)
        continue;
      return task_cost(list, task, batch, model.spec, model.table, r);
    }
    throw std::logic_error("no such copy");
  };
  const auto token_bytes = static_cast<double>(30 * model.spec.hidden * int64_t{sizeof(float)});
  const double row_bytes = token_bytes * static_cast<double>(model.spec.experts_per_token);
  const auto choice_bytes =
      static_cast<double>(30 * model.spec.experts_per_token * int64_t{sizeof(int32_t)});

  // A link without limits: rows are read and written as memory lets them.
  CHECK(cost_of(Value::normed, StreamUse::copy_out).memory_s == Approx(2 * token_bytes / 1e9));
  CHECK(cost_of(Value::normed, StreamUse::copy_out).link_s == 0);

  r.links = {{}, {{1e6, 0.5}, {2e6, 0.25}}};
  for (const auto& [cost, expected] :
       {std::pair(cost_of(Value::normed, StreamUse::copy_out), 0.25 + token_bytes / 2e6),
        std::pair(cost_of(Value::expert_out, StreamUse::copy_in), 0.5 + row_bytes / 1e6),
        std::pair(cost_of(Value::choice, StreamUse::copy_out), 0.25 + choice_bytes / 2e6)}) {
    CHECK(cost.link_s == Approx(expected));
    CHECK(cost.total_s() == Approx(expected));
  }

  // A step waits for its copies, and its limit is the link where it waits for them most.
  const auto step = [&] { return step_cost(list, std::vector{batch}, model.spec, model.table, r); };
  const auto copies = static_cast<double>(
      std::ranges::count(list.tasks, TaskKind::copy, [](const Task& t) { return t.kind; }));
  const auto limit = [&] {
    const SimulatedStep one =
        Simulator(list, r.links)
            .run(task_demands(list, std::vector{batch}, model.spec, model.table, r));
    return use_of(list, one.trace, std::vector<std::string>{"host", "device"}).limit();
  };
  const StepCost slow = step();
  CHECK(slow.phases.at("copy") == Approx(slow.link_s));
  CHECK(slow.link_s > 0.25 * copies);
  CHECK(slow.link_s < slow.total_s());
  CHECK(limit() == "host->device");
  r.links[1] = {{1e12, 0}, {1e12, 0}};
  CHECK(step().link_s > 0);
  CHECK(limit() == "device");
}

TEST_CASE("bound: twice the forward in backward, once where weights are frozen, no recompute") {
  TinyModel frozen(tiny_config(), find_op_set("cpu"), DType::f32);
  for (Tensor& t : frozen.table.tensors()) t.trainable = false;
  const MachineRates machine{1e9, 1e9};
  const auto flops = [&](TinyModel& m, bool recompute) {
    const Schedule list = single_train_schedule(m.input(32, 32, 1), 1, recompute);
    return step_bound(list, std::vector{full_batch(32, 32)}, machine, 0).flops;
  };
  CHECK(flops(shared_tiny_model(), true) == flops(shared_tiny_model(), false));
  // 6 operations a parameter and token of what enters products; 4 without weight gradients.
  const ModelSpec& s = shared_tiny_model().spec;
  const auto of = [](int64_t n) { return static_cast<double>(n); };
  const double layer =
      of(s.hidden) * (2 * of(s.heads * s.head_dim) + 2 * of(s.kv_heads * s.head_dim) +
                      of(s.experts) + 3 * of(s.experts_per_token * s.expert_width));
  const double matrices = of(s.layers) * layer + of(s.hidden * s.vocabulary);
  const double pairs = of(s.layers) * 14 * of(s.heads * s.head_dim) * 32 * 33 / 2;
  CHECK(flops(shared_tiny_model(), false) == Approx(6 * matrices * 32 + pairs));
  CHECK(flops(frozen, false) == Approx(4 * matrices * 32 + pairs));
}

}  // namespace
}  // namespace hearth::test
