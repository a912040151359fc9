// Splits that give the host no token of a layer: devices do not wait for the host's part, whatever stands
// before it in the host's stream, and no bit changes.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "modes/pipeline.h"
#include "plan/idle_tasks.h"
#include "runtime/model_cases.h"
#include "runtime/profile_fixture.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

/// Two devices with two stages each, so that updates of later stages stand between passes.
const std::vector<Stage> kStages = {{1, -1, 0}, {2, 1, 1}, {1, 2, 2}, {2, 3, 9}};

/// Gives a layer's experts to its device, all of them with a chance, else each with one half.
class OftenWhole final : public SplitRule {
 public:
  OftenWhole(double chance, uint64_t seed)
      : chance_(chance), random_(seed, RandomSite::shuffle, 3) {}

  void divide(int32_t layer, std::span<const double> tokens, std::span<Place> places) override {
    const auto stage = std::ranges::find_if(
        kStages, [&](const Stage& s) { return s.first <= layer && layer <= s.last; });
    const std::lock_guard lock(mutex_);
    const bool whole = random_.uniform(draw_++) < chance_;
    bool idle = true;
    for (size_t e = 0; e < places.size(); ++e) {
      places[e] = whole || random_.uniform(draw_++) < 0.5 ? stage->place : kHostPlace;
      for (size_t i = e; i < tokens.size(); i += places.size()) {
        idle = idle && (tokens[i] == 0 || places[e] != kHostPlace);
      }
    }
    ++(idle ? empty : filled);
  }
  int empty = 0, filled = 0;  // parts of the host

 private:
  double chance_;
  Random random_;
  uint64_t draw_ = 0;
  std::mutex mutex_;
};

Steps staged_steps(const ModelCase& model, SplitRule& splits) {
  JsonObject config = model.config;
  std::erase_if(config, [](const auto& entry) { return entry.first == "num_hidden_layers"; });
  config.emplace_back("num_hidden_layers", 4);
  Steps steps(config);
  steps.adapters = model.adapters;
  steps.places = {virtual_devices(2), {}};
  steps.places.host_lanes = 2;
  steps.planner = &pipeline_planner();
  steps.group = kMicroBatches;
  steps.rotates = true;
  steps.travelling.emplace();
  steps.travelling->stages = kStages;
  steps.travelling->splits = &splits;
  steps.travelling->spare = 1;
  return steps;
}

Steps on_one_host(const Steps& staged) {
  Steps steps = staged;
  steps.places = {};
  steps.planner = &single_planner();
  steps.travelling.reset();
  steps.rotates = false;
  return steps;
}

/// An update of a later stage, and the first combine of layer 0 whose host part stands behind it.
struct Stand {
  int32_t layer = -1;  // of the update
  int combine = 0;     // which of the layer, from 1
};

Stand first_stand(const Schedule& list) {
  const IdleTasks idle(list);
  const Task* update = nullptr;
  for (TaskId t = 0; t < std::ssize(list.tasks); ++t) {
    const Task& task = list.tasks[static_cast<size_t>(t)];
    const bool at_host = list.is_host(task.place);
    if (at_host && task.kind == TaskKind::update && task.layer > 1 && update == nullptr) {
      update = &task;
    }
    if (update == nullptr || task.kind != TaskKind::experts || task.stream != update->stream)
      continue;
    if (task.layer == 0 && idle.decision(t) >= 0) return {update->layer, task.rows.begin + 1};
  }
  return {};
}

/// Whether the update waited in vain for that combine, which its stream came to later.
bool waits_in_vain(double chance, std::chrono::milliseconds patience, int* empty) {
  OftenWhole splits(chance, 5);
  Steps steps = staged_steps(models()[0], splits);
  steps.count = 1;
  const Stand stand = first_stand(steps.list());
  REQUIRE(stand.layer > 1);
  std::mutex mutex;
  std::condition_variable changed;
  int combined = 0;
  bool has_waited = false, in_vain = false;
  const Decorated combine(TaskKind::combine, [&](const BodyContext& c) {
    if (c.layer != 0 || c.phase != Phase::forward) return;
    const std::lock_guard lock(mutex);
    ++combined;
    changed.notify_all();
  });
  const Decorated update(TaskKind::update, [&](const BodyContext& c) {
    std::unique_lock lock(mutex);
    if (c.layer != stand.layer || std::exchange(has_waited, true)) return;
    in_vain = !changed.wait_for(lock, patience, [&] { return combined >= stand.combine; });
  });
  steps.run();
  CHECK(has_waited);
  *empty = splits.empty;
  return in_vain;
}

TEST_CASE("idle tasks: a device does not wait for an empty part behind an update") {
  int empty = 0;
  CHECK_FALSE(waits_in_vain(1, std::chrono::seconds(60), &empty));
  CHECK(empty == 3 * kMicroBatches);  // layer 1 has no experts
  // It waits for a part that has tokens.
  CHECK(waits_in_vain(0, std::chrono::milliseconds(300), &empty));
}

TEST_CASE("idle tasks: parts that are empty now and then give the bits of one host") {
  uint64_t seed = 1;
  for (const ModelCase& model : models()) {
    for (const bool recompute : {false, true}) {
      for (const double chance : {0.5, 1.0}) {
        OftenWhole splits(chance, seed++);
        Steps steps = staged_steps(model, splits);
        steps.recompute = steps.inputs_on_host = recompute;
        steps.travelling->spare = recompute ? 0.3 : 1;
        INFO(steps.adapters.size() << " adapters, seed " << seed << ", chance " << chance);
        CHECK(steps.run() == on_one_host(steps).run());
        CHECK(splits.empty > 0);
        CHECK((chance == 1 || splits.filled > 0));
      }
    }
  }
}

TEST_CASE("idle tasks: what they do not write is not read, in any legal order") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    OftenWhole splits(0.5, seed);
    Steps steps = staged_steps(models()[seed % models().size()], splits);
    steps.count = 1;
    const Outcome expected = on_one_host(steps).run();
    steps.rotates = false;
    steps.options.order = random_order(steps.list(), seed);
    steps.options.poison = true;
    INFO("seed " << seed);
    CHECK(steps.run() == expected);
    CHECK(splits.empty > 0);
  }
}

TEST_CASE("idle tasks: what comes to the host for its part alone is idle with it") {
  OftenWhole splits(1, 1);
  const Schedule list = staged_steps(models()[0], splits).list();
  const IdleTasks idle(list);
  std::map<std::pair<Phase, Value>, int> copies;
  int experts = 0;
  for (TaskId t = 0; t < std::ssize(list.tasks); ++t) {
    if (idle.decision(t) < 0) continue;
    const Task& decision = list.tasks[static_cast<size_t>(idle.decision(t))];
    const Task& task = list.tasks[static_cast<size_t>(t)];
    CHECK(decision.kind == TaskKind::decide);
    CHECK(idle.decision(t) < t);
    CHECK(decision.rows.begin <= task.rows.begin);
    CHECK(task.rows.end <= decision.rows.end);
    if (task.kind == TaskKind::copy) ++copies[{task.phase, task.uses[0].port.value}];
    if (task.kind == TaskKind::experts) ++experts;
  }
  const int passes = 3 * kMicroBatches;  // layer 1 has no experts
  CHECK(experts == 2 * passes);
  CHECK(copies[{Phase::forward, Value::normed}] == passes);
  CHECK(copies[{Phase::forward, Value::expert_out}] == passes);
  CHECK(copies[{Phase::backward, Value::d_residual}] == passes);
  CHECK(copies[{Phase::backward, Value::d_rows}] == passes);
  CHECK(copies[{Phase::forward, Value::router_counts}] == 0);
}

}  // namespace
}  // namespace hearth::test
