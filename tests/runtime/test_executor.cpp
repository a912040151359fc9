// The executor: the same bits in every legal order, on every number of streams, workers and every
// group size, with freed addresses poisoned; and what it does when a step is stopped or fails.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "steps.h"

namespace hearth::test {
namespace {

TEST_CASE("executor: any legal order gives the same bits, freed addresses poisoned") {
  for (const bool recompute : {false, true}) {
    Steps steps;
    steps.recompute = recompute;
    const Outcome expected = steps.run();
    REQUIRE(std::isfinite(expected.norm));
    const Schedule list = steps.list();
    steps.options.poison = true;
    CHECK(steps.run() == expected);
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      steps.options.order = random_order(list, seed);
      REQUIRE(steps.options.order.size() == list.tasks.size());
      CHECK_FALSE(std::is_sorted(steps.options.order.begin(), steps.options.order.end()));
      CHECK(steps.run() == expected);
    }
  }
}

TEST_CASE("executor: an illegal order is noticed by the comparison") {
  Steps steps;
  const Outcome expected = steps.run();
  steps.options.poison = true;
  const Schedule list = steps.list();
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    steps.options.order.push_back(static_cast<TaskId>(t));
  }
  // The first backward of E before the head: it reads what is not there yet.
  const auto backward =
      std::find_if(steps.options.order.begin(), steps.options.order.end(), [&](TaskId t) {
        const Task& task = list.tasks[static_cast<size_t>(t)];
        return task.kind == TaskKind::attention && task.phase == Phase::backward;
      });
  std::rotate(steps.options.order.begin() + 2, backward, backward + 1);
  CHECK_FALSE(steps.run() == expected);
}

TEST_CASE("executor: group size and recompute change no bit") {
  Steps steps;
  const Outcome expected = steps.run();
  for (const int64_t group : {1, 3, 4}) {
    for (const bool recompute : {false, true}) {
      steps.group = group;
      steps.recompute = recompute;
      CHECK(steps.run() == expected);
    }
  }
}

TEST_CASE("executor: the number of workers changes no bit") {
  Steps steps;
  const Outcome expected = steps.run();
  for (const int workers : {2, 3, 5, 8}) {
    steps.workers = workers;
    CHECK(steps.run() == expected);
  }
}

TEST_CASE("executor: tasks spread over streams give the same bits") {
  Steps steps;
  const Outcome expected = steps.run();
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    steps.change_list = [seed](Schedule& list) {
      const Random random(seed, RandomSite::shuffle, 1);
      list.streams = {{"a"}, {"b"}, {"c"}};
      for (size_t t = 0; t < list.tasks.size(); ++t) {
        list.tasks[t].stream = static_cast<int32_t>(random.below(t, 3));
      }
    };
    CHECK(steps.run() == expected);
  }
}

TEST_CASE("executor: an abandoned step changes no weight, a begun update is carried through") {
  Steps steps;
  steps.change_list = [](Schedule&) {};
  const auto before =
      TinyModel(tiny_config({{"mlp_only_layers", JsonArray{1}}, {"num_hidden_layers", 3}}), cpu(),
                DType::f32)
          .bytes(CopyRole::master);
  int asked = 0;
  steps.options.abandon = [&asked] { return ++asked == 40; };
  CHECK(steps.run().weights == before);
  CHECK(asked == 40);
  // Never asked again once an update has begun.
  Steps whole;
  const Outcome expected = whole.run();
  asked = 0;
  const auto tasks = static_cast<int>(whole.list().tasks.size());
  whole.options.abandon = [&asked] {
    ++asked;
    return false;
  };
  CHECK(whole.run() == expected);
  CHECK(asked < 2 * tasks);
}

TEST_CASE("executor: every update is announced, after which it may still wait") {
  Steps steps;
  const Outcome expected = steps.run();
  std::vector<int32_t> layers;
  steps.options.before_update = [&](const Task& task) {
    CHECK(task.kind == TaskKind::update);
    layers.push_back(task.layer);
  };
  CHECK(steps.run() == expected);
  std::vector<int32_t> of_list;
  for (const Task& task : steps.list().tasks) {
    if (task.kind == TaskKind::update) of_list.push_back(task.layer);
  }
  CHECK(std::is_sorted(of_list.begin(), of_list.end()));  // the order in which saves write
  std::vector<int32_t> of_steps = of_list;
  of_steps.insert(of_steps.end(), of_list.begin(), of_list.end());
  CHECK(layers == of_steps);
  // A stop that comes while the first of them waits abandons the step.
  bool stop = false;
  steps.options.before_update = [&](const Task&) { stop = true; };
  steps.options.abandon = [&] { return stop; };
  CHECK_FALSE(steps.run() == expected);
}

TEST_CASE("executor: a body's error ends the run on all streams and is raised") {
  Steps steps;
  steps.change_list = [](Schedule& list) {
    list.streams = {{"a"}, {"b"}};
    for (size_t t = 0; t < list.tasks.size(); ++t) list.tasks[t].stream = t % 2;
    for (Task& task : list.tasks) {
      if (task.kind == TaskKind::head) task.uses.clear();  // its body finds nothing it declared
    }
  };
  CHECK_THROWS_AS(steps.run(), std::logic_error);
}

TEST_CASE("executor: a gradient that is not finite leaves the weights and clears the gradient") {
  TinyModel model(tiny_config(), cpu(), DType::f32);
  const Schedule list = single_train_schedule(model.input(kTokens, kTokens), 1, false);
  const auto executor = model.executor(list);
  const TinyBatch batch({5, 4}, model.spec.vocabulary, 3);
  const BatchShape shape = TinyModel::give(*executor, batch, 0);
  executor->scalar(Value::tokens) = static_cast<double>(batch.tokens());
  executor->scalar(Value::trained_tokens) = static_cast<double>(batch.trained());
  executor->scalar(Value::lr) = 1e-2;
  executor->scalar(Value::update_step) = 1;
  const View norm = model.table.view(*model.table.find("model.norm.weight"), CopyRole::master);
  const float kept = norm.as<float>()[0];
  norm.as<float>()[0] = std::numeric_limits<float>::infinity();
  auto before = model.bytes(CopyRole::master);
  executor->run({&shape, 1});
  CHECK(executor->scalar(Value::finite) == 0);
  CHECK(model.bytes(CopyRole::master) == before);
  norm.as<float>()[0] = kept;
  executor->run({&shape, 1});
  CHECK(executor->scalar(Value::finite) == 1);
}

}  // namespace
}  // namespace hearth::test
