// Steps over several places: the same bits as on the host alone, in any legal order, with rows that a
// micro-batch does not have left alone; and what fails at one place ends the run at all.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <thread>

#include "device/host_device.h"
#include "steps.h"
#include "support/raises.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

TinyPlaces on(const Placement& placement, int devices) {
  return {virtual_devices(devices), [=](ParameterTable& table) { place_blocks(table, placement); }};
}

Steps steps_on(const Placement& placement, int devices = 2) {
  Steps steps;
  steps.places = on(placement, devices);
  return steps;
}

const std::vector<Placement>& placements() {
  static const std::vector<Placement> all = {{1, 1}, {1, 0}, {0, 1}, {1, 2}, {2, 2}};
  return all;
}

TEST_CASE("places: a step gives the same bits wherever it runs") {
  const Outcome expected = Steps().run();
  REQUIRE(std::isfinite(expected.norm));
  REQUIRE(expected.aux_loss > 0);
  for (const Placement& placement : placements()) {
    INFO("dense at " << placement.dense(0) << ", experts at " << placement.expert(0, 0, 1));
    for (const int64_t group : {1, 4}) {
      for (const bool recompute : {false, true}) {
        Steps steps = steps_on(placement);
        steps.group = group;
        for (const bool inputs_on_host : {false, true}) {
          steps.recompute = recompute;
          steps.inputs_on_host = inputs_on_host;
          CHECK(steps.run() == expected);
        }
      }
    }
  }
}

TEST_CASE("places: layers spread at random, with every kind of block and adapters") {
  const std::vector<JsonObject> configs = {
      {{"num_hidden_layers", 3}, {"mlp_only_layers", JsonArray{1}}},
      {{"tie_word_embeddings", true}},
      {{"model_type", "qwen2_moe"}, {"shared_expert_intermediate_size", 9}}};
  for (const JsonObject& config : configs) {
    for (const bool adapters : {false, true}) {
      Steps host(config);
      if (adapters) host.adapters = {"attention", "experts"};
      const Outcome expected = host.run();
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        Steps steps = host;
        steps.places = {virtual_devices(2),
                        [=](ParameterTable& table) { place_at_random(table, 3, seed); }};
        steps.recompute = seed % 2 == 0;
        steps.inputs_on_host = seed % 3 == 0;
        CHECK(steps.run() == expected);
      }
    }
  }
}

TEST_CASE("places: any legal order gives the same bits, freed addresses poisoned") {
  const Outcome expected = Steps().run();
  for (const Placement& placement : {Placement{1, 0}, Placement{1, 2}}) {
    Steps steps = steps_on(placement);
    steps.inputs_on_host = placement.dense(0) != kHostPlace;
    steps.options.poison = true;
    const Schedule list = steps.list();
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      steps.options.order = random_order(list, seed);
      REQUIRE(steps.options.order.size() == list.tasks.size());
      CHECK(steps.run() == expected);
    }
    // Without a copy that brings the experts their tokens the comparison fails.
    steps.change_list = [](Schedule& changed) {
      for (Task& task : changed.tasks) {
        const bool rows = task.kind == TaskKind::copy && task.uses[0].port.value == Value::normed;
        if (rows) task.uses[0].port.cols = 0;
      }
    };
    CHECK_FALSE(steps.run() == expected);
  }
}

TEST_CASE("places: slow links change no bit") {
  const Outcome expected = Steps().run();
  VirtualOptions options;
  options.h2d = options.d2h = 50e6;
  options.latency = 20e-6;
  Steps steps;
  steps.places = {{make_virtual_device(options)}, [](ParameterTable& table) {
                    place_blocks(table, {1, 0});
                  }};
  CHECK(steps.run() == expected);
}

TEST_CASE("places: a copy has the rows of its micro-batch and no more") {
  TinyModel model(tiny_config(), cpu(), DType::f32, 1, {}, on({1, 0}, 1));
  const Schedule list = single_train_schedule(model.input(kTokens, kTokens), 1, false);
  const auto executor = model.executor(list);
  const TinyBatch batch({5, 4}, model.spec.vocabulary, 3);
  const BatchShape shape = TinyModel::give(*executor, batch, 0);
  executor->scalar(Value::tokens) = static_cast<double>(batch.tokens());
  executor->scalar(Value::trained_tokens) = static_cast<double>(batch.trained());
  // An order that ends behind the copy of the tokens for the experts: the arenas stay as they are then.
  RunOptions options;
  Trace trace;
  options.trace = &trace;
  const Task* copy = nullptr;
  for (size_t t = 0; copy == nullptr; ++t) {
    options.order.push_back(static_cast<TaskId>(t));
    const Task& task = list.tasks[t];
    if (task.kind == TaskKind::copy && task.uses[0].port.value == Value::normed) copy = &task;
  }
  const auto bytes_of = [&](int use) {
    const Buffer& b =
        list.buffers[static_cast<size_t>(copy->uses[static_cast<size_t>(use)].buffer)];
    const auto& arena = model.workspace().arenas[static_cast<size_t>(b.place)];
    return std::span<std::byte>(arena->data() + b.address, b.bytes);
  };
  const std::span<std::byte> from = bytes_of(0), to = bytes_of(1);
  std::ranges::fill(to, std::byte{0x5a});
  executor->run({&shape, 1}, options);
  const auto rows = static_cast<size_t>(batch.tokens());
  const size_t copied = rows * static_cast<size_t>(model.spec.hidden) * sizeof(float);
  REQUIRE_FALSE(trace.empty());
  CHECK(std::ranges::max(trace, {}, &TaskTime::task).bytes == copied);
  REQUIRE(copied < to.size());
  CHECK(std::ranges::equal(from.first(copied), to.first(copied)));
  CHECK(std::ranges::all_of(to.subspan(copied), [](std::byte b) { return b == std::byte{0x5a}; }));
}

TEST_CASE("places: the trace has every task once, after what it waits for") {
  Steps steps = steps_on({1, 0}, 1);
  Trace trace;
  steps.options.trace = &trace;
  steps.run();
  const Schedule list = steps.list();
  REQUIRE(trace.size() == list.tasks.size());
  CHECK(std::ranges::is_sorted(trace, {}, &TaskTime::begin));
  std::vector<TaskTime> of(list.tasks.size());
  for (const TaskTime& time : trace) of[static_cast<size_t>(time.task)] = time;
  const auto before = dependencies(list);
  for (size_t t = 0; t < of.size(); ++t) {
    CHECK(of[t].task == static_cast<TaskId>(t));
    CHECK(of[t].begin <= of[t].end);
    for (const TaskId b : before[t]) CHECK(of[static_cast<size_t>(b)].end <= of[t].begin);
    // Each stream has one worker here.
    CHECK(of[t].cpu_s >= 0);
    CHECK(of[t].cpu_s <= of[t].end - of[t].begin);
    CHECK((of[t].bytes > 0) == (list.tasks[t].kind == TaskKind::copy));
    if (list.tasks[t].kind == TaskKind::experts) CHECK(of[t].cpu_s > 0);
  }
}

TEST_CASE("places: an abandoned step changes no weight at any place") {
  const Steps fresh = steps_on({1, 0}, 1);
  const auto before =
      TinyModel(tiny_config({{"mlp_only_layers", JsonArray{1}}, {"num_hidden_layers", 3}}), cpu(),
                DType::f32)
          .bytes(CopyRole::master);
  const Outcome both = Steps().run();
  Steps first;
  first.count = 1;
  const Outcome one = first.run();
  for (int after : {1, 40, 150}) {
    Steps steps = fresh;
    std::atomic<int> asked{0};
    steps.options.abandon = [&] { return ++asked >= after; };
    CHECK(steps.run().weights == before);
  }
  // Whatever moment the stop takes: whole steps or nothing of them.
  for (const int delay : {0, 1, 2, 4, 8}) {
    Steps steps = fresh;
    std::atomic<bool> stop{false};
    std::atomic<int> updates{0};
    steps.options.before_update = [&](const Task&) { ++updates; };
    steps.options.abandon = [&] { return stop.load() || updates > delay; };
    const Outcome outcome = steps.run();
    CHECK((outcome.weights == before || outcome.weights == one.weights ||
           outcome.weights == both.weights));
  }
}

TEST_CASE("places: updates are announced one at a time, layers in order at each place") {
  Steps steps = steps_on({1, 0}, 1);
  std::atomic<int> inside{0};
  std::vector<int32_t> layers[2];
  steps.options.before_update = [&](const Task& task) {
    CHECK(++inside == 1);
    std::this_thread::yield();
    layers[task.place].push_back(task.layer);
    --inside;
  };
  steps.run();
  CHECK(layers[0] == std::vector<int32_t>{0, 2, 0, 2});  // experts; layer 1 is dense
  CHECK(layers[1] == std::vector<int32_t>{-1, 0, 1, 2, 3, -1, 0, 1, 2, 3});
}

TEST_CASE("places: an error at one place ends the run at all and is raised") {
  for (const TaskKind kind : {TaskKind::experts, TaskKind::attention}) {
    Steps steps = steps_on({1, 0}, 1);
    steps.change_list = [=](Schedule& list) {
      for (Task& task : list.tasks) {
        if (task.kind == kind && task.phase == Phase::backward) task.uses.clear();
      }
    };
    CHECK_THROWS_AS(steps.run(), std::logic_error);
  }
}

TEST_CASE("places: a workspace of less memory or fewer places is refused") {
  TinyModel placed(tiny_config(), cpu(), DType::f32, 1, {}, on({1, 0}, 1));
  TinyModel host(tiny_config(), cpu(), DType::f32);
  const Schedule list = single_train_schedule(placed.input(kTokens, kTokens), 1, false);
  const Schedule small = single_train_schedule(placed.input(8, 8), 1, false);
  CHECK_THROWS_AS(host.executor(list), std::logic_error);
  const Schedule* lists[] = {&small};
  const WorkspaceNeed need = workspace_need(lists);
  const auto device = make_host_device(uint64_t{1} << 32);
  const auto other = make_virtual_device({});
  Device* const devices[] = {device.get(), other.get()};
  Workspace workspace = make_workspace(devices, need, 1, {});
  const ExecutorParts parts{{{*device, cpu()}, {*other, cpu()}},
                            workspace,
                            placed.spec,
                            placed.settings,
                            placed.table,
                            nullptr};
  CHECK_NOTHROW(Executor(parts, small));
  CHECK_THROWS_AS(Executor(parts, list), std::logic_error);
}

TEST_CASE("places: a device's memory is held to its budget") {
  VirtualOptions options;
  options.memory = 4096;
  const auto host = make_host_device(uint64_t{1} << 32);
  const auto small = make_virtual_device(options);
  Steps steps = steps_on({1, 0}, 1);
  const Schedule list = steps.list();
  const Schedule* lists[] = {&list};
  Device* const devices[] = {host.get(), small.get()};
  CHECK(raised_by([&] { make_workspace(devices, workspace_need(lists), 1, {}); }).code ==
        ExitCode::usage);
}

}  // namespace
}  // namespace hearth::test
