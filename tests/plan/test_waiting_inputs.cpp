// Inputs of a device's layers that wait on the host between forward and backward: when they leave and
// come back, and what memory that takes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "support/tiny_places.h"

namespace hearth::test {
namespace {

constexpr int32_t kLayers = 4, kDense = 2;
constexpr Place kDevice = 1;

const OpSet& cpu_ops() {
  register_all_op_sets();
  return find_op_set("cpu");
}

/// A step of four micro-batches; layers are at a device but for those of `on_host`.
struct Step {
  TinyModel model;
  PlanInput input;

  explicit Step(bool waits, int32_t first_on_host = kLayers)
      : model(tiny_config({{"num_hidden_layers", int64_t{kLayers}},
                           {"mlp_only_layers", JsonArray{int64_t{kDense}}}}),
              cpu_ops(), DType::f32, 1, {},
              {virtual_devices(1),
               [=](ParameterTable& table) {
                 for (BlockId b = 0; b < std::ssize(table.blocks()); ++b) {
                   const bool host = table.block(b).layer >= first_on_host;
                   table.set_place(b, host ? kHostPlace : kDevice);
                 }
               }}),
        input(model.input(32, 32, 4)) {
    input.inputs_on_host = waits;
  }
  Schedule train(int64_t group, bool recompute = true) const {
    return single_planner().train(input, group, recompute).schedule;
  }
};

/// Positions of the copies of layers' inputs, by layer and micro-batch.
std::map<std::pair<int32_t, int32_t>, TaskId> copies_of_inputs(const Schedule& list, Phase phase) {
  std::map<std::pair<int32_t, int32_t>, TaskId> at;
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& task = list.tasks[t];
    const bool of_input = task.kind == TaskKind::copy && task.phase == phase &&
                          task.uses[0].port.value == Value::residual;
    const bool out =
        of_input && list.is_host(list.buffers[static_cast<size_t>(task.uses[1].buffer)].place);
    if (of_input && out == (phase == Phase::forward)) {
      CHECK(at.emplace(std::pair(task.layer, task.rows.begin), static_cast<TaskId>(t)).second);
    }
  }
  return at;
}

TaskId first_task(const Schedule& list, Phase phase, int32_t layer, int32_t m) {
  const auto found = std::ranges::find_if(list.tasks, [&](const Task& task) {
    return task.kind == TaskKind::attention && task.phase == phase && task.layer == layer &&
           task.rows.begin == m;
  });
  REQUIRE(found != list.tasks.end());
  return static_cast<TaskId>(found - list.tasks.begin());
}

TEST_CASE("waiting inputs: each leaves once and comes back ahead of its backward") {
  for (const int64_t group : {1, 3, 4}) {
    INFO("groups of " << group);
    const Schedule list = Step(true).train(group);
    const auto out = copies_of_inputs(list, Phase::forward);
    const auto back = copies_of_inputs(list, Phase::backward);
    // The last layer's stay.
    CHECK(out.size() == (kLayers - 1) * 4);
    CHECK(back.size() == out.size());
    for (const auto& [of, left] : out) {
      const auto [layer, m] = of;
      INFO("layer " << layer << ", micro-batch " << m);
      REQUIRE(back.contains(of));
      CHECK(first_task(list, Phase::forward, layer, m) < left);
      CHECK(left < back.at(of));
      // Before the tasks ahead of those that read it.
      const TaskId reader = first_task(list, Phase::recompute, layer, m);
      int32_t between = 0;
      for (TaskId t = back.at(of); t < reader; ++t) {
        const Task& task = list.tasks[static_cast<size_t>(t)];
        between += task.kind == TaskKind::attention && task.phase == Phase::backward;
      }
      CHECK(between >= 1);
    }
  }
}

TEST_CASE("waiting inputs: nothing else changes, and nothing if layers are on the host") {
  const auto without_copies = [](const Schedule& list) {
    std::vector<std::string> tasks;
    for (const Task& task : list.tasks) {
      if (task.kind != TaskKind::copy) tasks.push_back(describe(task));
    }
    return tasks;
  };
  CHECK(without_copies(Step(true).train(4)) == without_copies(Step(false).train(4)));
  CHECK(copies_of_inputs(Step(false).train(4), Phase::backward).empty());
  // Of the first layer alone; the inputs of the second are on the host anyway.
  const Schedule some = Step(true, 1).train(4);
  CHECK(copies_of_inputs(some, Phase::backward).size() == 4);
  CHECK(Step(true, 0).train(4).arena_bytes == Step(false, 0).train(4).arena_bytes);
}

TEST_CASE("waiting inputs: the device has room for the inputs of few tasks, whatever the layers") {
  const size_t input = static_cast<size_t>(32 * Step(true).model.spec.hidden) * sizeof(float);
  for (const int64_t group : {1, 2, 4}) {
    const Schedule here = Step(false).train(group), there = Step(true).train(group);
    const auto count = static_cast<size_t>(group);
    // The device keeps the last layer's, and at most those of two tasks each way.
    CHECK(there.arena_bytes[kDevice] < here.arena_bytes[kDevice]);
    CHECK(there.arena_bytes[kHostPlace] >= here.arena_bytes[kHostPlace] + 2 * count * input);
    size_t waits = 0;
    for (const Buffer& b : there.buffers) {
      if (b.port.value == Value::residual && b.use == BufferClass::saved) {
        CHECK((b.place == kHostPlace || b.layer == kLayers - 1));
        waits += b.place == kHostPlace;
      }
    }
    CHECK(waits == (kLayers - 1) * 4);
  }
}

}  // namespace
}  // namespace hearth::test
