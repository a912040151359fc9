// Steps whose experts are divided among places, in random stages: the bits of one place in any legal
// order, and faults of copies and dependencies that change them.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

#include "modes/pipeline.h"
#include "runtime/model_cases.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

/// Further nodes of the host, devices and lanes, different for each seed.
PartsCase case_of(uint64_t seed) {
  return {.hosts = 1 + static_cast<int32_t>(seed % 2),
          .devices = 2 + static_cast<int32_t>(seed / 2 % 2),
          .seed = seed};
}

Steps steps_of(const ModelCase& model, uint64_t seed) {
  Steps steps(model.config);
  steps.adapters = model.adapters;
  steps.places = places_of(case_of(seed), seed % 3 != 0);
  steps.planner = seed % 4 == 0 ? &single_planner() : &pipeline_planner();
  steps.group = 1 + static_cast<int64_t>(seed % 4);
  steps.recompute = seed % 5 < 2;
  return steps;
}

bool has_parts(const Schedule& list) {
  return std::ranges::any_of(list.tasks, [](const Task& t) { return !t.part.all(); });
}

void compare_random_cuts(uint64_t first, uint64_t last, int orders) {
  for (const ModelCase& model : models()) {
    const Outcome expected = on_host(model);
    REQUIRE(std::isfinite(expected.norm));
    int divided = 0;
    for (uint64_t seed = first; seed <= last; ++seed) {
      INFO("seed " << seed);
      Steps steps = steps_of(model, seed);
      CHECK(steps.run() == expected);  // by the threads of all streams
      const Schedule list = steps.list();
      divided += has_parts(list);
      steps.options.poison = true;
      for (int order = 0; order < orders; ++order) {
        steps.options.order = random_order(list, 100 * seed + static_cast<uint64_t>(order));
        REQUIRE(steps.options.order.size() == list.tasks.size());
        CHECK(steps.run() == expected);
      }
    }
    CHECK(2 * divided > static_cast<int>(last - first));
  }
}

TEST_CASE("parts: random stages and parts, any legal order, give the bits of one place") {
  compare_random_cuts(1, 12, 2);
}
TEST_CASE("parts: a block may be larger than several lanes' shares of the norm") {
  compare_random_cuts(22, 22, 1);
  compare_random_cuts(35, 35, 1);
}
TEST_CASE("parts: many random stages and parts", "[.long]") { compare_random_cuts(13, 200, 4); }

/// Whether some legal order of the changed list gives other bits, or is refused.
bool caught(const ModelCase& model, uint64_t seed, const std::function<void(Schedule&)>& change) {
  const Outcome expected = on_host(model);
  Steps steps = steps_of(model, seed);
  steps.change_list = change;
  steps.options.poison = true;
  Schedule list = steps.list();
  change(list);
  for (uint64_t order = 1; order <= 8; ++order) {
    steps.options.order = random_order(list, order);
    if (steps.options.order.size() != list.tasks.size()) return true;
    if (!(steps.run() == expected)) return true;
  }
  return false;
}

/// The first copy of a part of a value in a phase.
Task* part_copy(Schedule& list, Value value, Phase phase) {
  for (Task& task : list.tasks) {
    if (task.kind == TaskKind::copy && !task.part.all() && task.phase == phase &&
        task.uses[0].port.value == value) {
      return &task;
    }
  }
  return nullptr;
}

TEST_CASE("parts: a copy of a part with other rows changes the bits") {
  int planted = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const ModelCase model = models()[0];
    const Schedule list = steps_of(model, seed).list();
    for (const auto& [value, phase] : {std::pair(Value::expert_out, Phase::forward),
                                       std::pair(Value::row_weight, Phase::backward),
                                       std::pair(Value::d_rows, Phase::backward)}) {
      Schedule probe = list;
      if (part_copy(probe, value, phase) == nullptr) continue;
      ++planted;
      INFO("seed " << seed << ", " << info_of(value).name);
      CHECK(caught(model, seed, [&, value = value, phase = phase](Schedule& changed) {
        for (Task& task : changed.tasks) {
          if (task.kind != TaskKind::copy || task.part.all() || task.phase != phase ||
              task.uses[0].port.value != value) {
            continue;
          }
          task.part.place = task.part.place == 0 ? 1 : 0;  // of another place, perhaps none at all
        }
      }));
    }
  }
  CHECK(planted >= 6);
}

TEST_CASE("parts: a part that does not wait for its rows changes the bits") {
  int planted = 0;
  // Without recompute: there, memory that is used again orders the tasks, too.
  for (const uint64_t seed : {2, 3, 4, 7, 8, 9}) {
    const ModelCase model = models()[0];
    if (!has_parts(steps_of(model, seed).list())) continue;
    ++planted;
    INFO("seed " << seed);
    // The copies of results claim to read another part of the rows, so nothing orders them.
    const auto drop = [](Schedule& changed) {
      for (Task& task : changed.tasks) {
        if (task.kind != TaskKind::copy || task.phase != Phase::forward) continue;
        BufferUse& from = task.uses[0];
        if (from.port.value == Value::expert_out && !from.part.all()) from.part.place += 1;
      }
    };
    CHECK(caught(model, seed, drop));
  }
  CHECK(planted >= 2);
}

TEST_CASE("parts: a result that is gathered without one of its parts changes the bits") {
  int planted = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const ModelCase model = models()[0];
    Schedule probe = steps_of(model, seed).list();
    if (part_copy(probe, Value::expert_out, Phase::forward) == nullptr) continue;
    ++planted;
    INFO("seed " << seed);
    CHECK(caught(model, seed, [](Schedule& changed) {
      part_copy(changed, Value::expert_out, Phase::forward)->uses[0].port.cols = 0;
    }));
  }
  CHECK(planted >= 2);
}

}  // namespace
}  // namespace hearth::test
