// Updates that run in the schedule of the next step: the bits stay, whatever computes where.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cmath>
#include <thread>

#include "runtime/model_cases.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

constexpr int kSteps = 3;

Steps steps_on_host(const ModelCase& model, int count = kSteps) {
  Steps steps(model.config);
  steps.adapters = model.adapters;
  steps.count = count;
  return steps;
}

Steps rotated(Steps steps) {
  steps.rotates = true;
  return steps;
}

/// Dense parts at a device, experts at the host.
Steps divided(const ModelCase& model) {
  Steps steps = rotated(steps_on_host(model));
  steps.places = {virtual_devices(1), [](ParameterTable& table) {
                    place_blocks(table, Placement{1, 0});
                  }};
  return steps;
}

/// All weights live at the host and travel.
Steps travelling(const ModelCase& model, int devices, double spare = 0.3,
                 uint64_t ahead = 1 << 20) {
  Steps steps = rotated(travelling_steps(model, devices, spare, ahead));
  steps.count = kSteps;
  return steps;
}

TEST_CASE("rotated: the bits of steps that end with their updates") {
  for (const ModelCase& model : models()) {
    const Outcome expected = steps_on_host(model).run();
    REQUIRE(std::isfinite(expected.norm));
    CHECK(rotated(steps_on_host(model)).run() == expected);
    for (const bool recompute : {false, true}) {
      Steps steps = divided(model);
      steps.recompute = steps.inputs_on_host = recompute;
      steps.group = recompute ? 1 : 4;
      CHECK(steps.run() == expected);
    }
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const PartsCase of{.seed = seed};
      Steps steps = rotated(steps_on_host(model));
      steps.places = places_of(of, true);
      CHECK(steps.run() == expected);
    }
    for (const int devices : {1, 2}) {
      for (const double spare : {0.0, 0.3, 1.0}) {
        for (const uint64_t ahead : {uint64_t{0}, uint64_t{6000}, uint64_t{1} << 30}) {
          INFO(devices << " devices, " << spare << " spare, " << ahead << " bytes ahead");
          CHECK(travelling(model, devices, spare, ahead).run() == expected);
        }
      }
    }
  }
}

TEST_CASE("rotated: in any order that dependencies allow") {
  const ModelCase model = models()[0];
  const Outcome expected = steps_on_host(model).run();
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Steps steps = divided(model);
    steps.options.order = random_order(steps.list(), seed);
    steps.options.poison = true;
    CHECK(steps.run() == expected);
  }
}

TEST_CASE("rotated: the host updates the next layer while a device computes this one") {
  const Schedule list = divided(models()[0]).list();
  REQUIRE(list.rotates);
  const auto first = [&](const auto& is) {
    return std::ranges::find_if(list.tasks, is) - list.tasks.begin();
  };
  const auto dependent = dependencies(list);
  int updates = 0;
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& update = list.tasks[t];
    if (update.kind != TaskKind::update) continue;
    ++updates;
    // Nobody has used its blocks before.
    for (const TaskId before : dependent[t]) {
      CHECK(list.tasks[static_cast<size_t>(before)].kind == TaskKind::update);
    }
    const auto of_layer_before = first([&](const Task& task) {
      return task.kind == TaskKind::attention && task.layer == update.layer - 1;
    });
    if (update.layer > 0) CHECK(static_cast<ptrdiff_t>(t) < of_layer_before);
    if (update.layer > 1) {
      const auto two_before = first([&](const Task& task) {
        return task.kind == TaskKind::attention && task.layer == update.layer - 2;
      });
      CHECK(static_cast<ptrdiff_t>(t) > two_before);  // not all at the beginning
    }
  }
  CHECK(updates > 3);
  CHECK(first([](const Task& task) { return task.kind == TaskKind::clip; }) >
        first([](const Task& task) { return task.phase == Phase::backward; }));
}

TEST_CASE("rotated: an abandoned step carries through the updates of the one before") {
  for (const bool travels : {false, true}) {
    const ModelCase model = models()[0];
    const Outcome none = steps_on_host(model, 0).run(), one = steps_on_host(model, 1).run(),
                  two = steps_on_host(model, 2).run();
    Steps steps = travels ? travelling(model, 1) : divided(model);
    const auto tasks = static_cast<int>(steps.list().tasks.size());
    int ended[3] = {};
    for (const int of_step : {0, 1, 2}) {
      for (const int after : {1, tasks / 8, tasks / 2, tasks}) {
        std::atomic<int> asked{0};
        steps.options.abandon = [&] { return ++asked >= of_step * tasks + after; };
        const Outcome outcome = steps.run();
        const Outcome& expected = of_step == 0 ? none : of_step == 1 ? one : two;
        CHECK(outcome.weights == expected.weights);
        CHECK(outcome.moments == expected.moments);
        ++ended[of_step];
      }
    }
    CHECK(ended[2] == 4);
  }
}

TEST_CASE("rotated: every update is announced, also where none is due") {
  Steps steps = divided(models()[0]);
  std::atomic<int> announced{0};
  steps.options.before_update = [&](const Task& task) {
    CHECK(task.kind == TaskKind::update);
    ++announced;
  };
  steps.run();
  int64_t of_list = 0;
  for (const Task& task : steps.list().tasks) of_list += task.kind == TaskKind::update;
  CHECK(announced == of_list * (kSteps + 1));  // and those that are drained
}

TEST_CASE("rotated: weights cross the link once a step, after their updates") {
  const ModelCase model = models()[0];
  Steps plain = travelling(model, 1, 1, 1 << 30), steps = plain;
  plain.rotates = false;
  plain.run();
  // Slow updates: what is loaded ahead could overtake them.
  steps.options.before_update = [](const Task&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  steps.run();
  REQUIRE(plain.moved.size() == 1);
  CHECK(steps.moved.front().bytes_in == plain.moved.front().bytes_in);
  CHECK(steps.moved.front().bytes_out == plain.moved.front().bytes_out);
  // As a simulation has it.
  uint64_t in = 0;
  for (const std::vector<BlockCopy>& step : steps.simulated) {
    for (const BlockCopy& copy : step) in += copy.to == kHostPlace ? 0 : copy.bytes;
  }
  CHECK(in == steps.moved.front().bytes_in);
}

}  // namespace
}  // namespace hearth::test
