// Tokens on their way to experts at another place: in bf16 if all products of the experts round them to
// bf16, so the bits stay those of one place. Dropout of adapters comes before the rounding.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "modes/pipeline.h"
#include "runtime/model_cases.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

void in_bf16(RunSettings& settings) { settings.compute = Compute::bf16; }

Steps bf16_steps(const ModelCase& model, uint64_t seed) {
  const PartsCase parts{.hosts = 1 + static_cast<int32_t>(seed % 2),
                        .devices = 1 + static_cast<int32_t>(seed / 2 % 2),
                        .seed = seed};
  Steps steps(model.config);
  steps.adapters = model.adapters;
  steps.places = places_of(parts, seed % 3 != 0);
  steps.planner = seed % 4 == 0 ? &single_planner() : &pipeline_planner();
  steps.group = 1 + static_cast<int64_t>(seed % 4);
  steps.recompute = seed % 5 < 2;
  steps.settings = in_bf16;
  return steps;
}

int64_t copies_of(const Schedule& list, Value value) {
  return std::ranges::count_if(list.tasks, [value](const Task& task) {
    return task.kind == TaskKind::copy && task.uses[0].port.value == value;
  });
}

TEST_CASE("sent tokens: in bf16 they give the bits of one place") {
  int64_t sent = 0;
  for (const ModelCase& model : models()) {
    Steps host(model.config);
    host.adapters = model.adapters;
    host.settings = in_bf16;
    const Outcome expected = host.run();
    REQUIRE(std::isfinite(expected.norm));
    host.settings = {};
    CHECK_FALSE(host.run() == expected);  // bf16 does round
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      INFO("seed " << seed);
      const Steps steps = bf16_steps(model, seed);
      sent += copies_of(steps.list(), Value::normed_sent);
      CHECK(Steps(steps).run() == expected);
    }
  }
  CHECK(sent > 0);
}

TEST_CASE("sent tokens: in f32 with products in f32, and with dropout of the experts' adapters") {
  int bf16 = 0, f32 = 0;
  for (const ModelCase& model : models()) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      INFO("seed " << seed);
      Steps steps = bf16_steps(model, seed);
      const int64_t rounded = copies_of(steps.list(), Value::normed_sent);
      steps.settings = {};
      const int64_t whole = copies_of(steps.list(), Value::normed);
      CHECK(copies_of(steps.list(), Value::normed_sent) == 0);
      CHECK(rounded <= whole);
      steps.settings = [](RunSettings& settings) {
        in_bf16(settings);
        settings.lora_dropout = 0.2;
      };
      const int64_t dropped = copies_of(steps.list(), Value::normed_sent);
      CHECK((dropped == 0 || dropped == rounded));
      bf16 += dropped > 0;
      f32 += dropped == 0 && rounded > 0;
    }
  }
  CHECK(bf16 > 0);  // without adapters nothing is dropped
  CHECK(f32 > 0);
}

TEST_CASE("sent tokens: half of the bytes cross the link") {
  for (const bool rounds : {false, true}) {
    TinyModel model(tiny_config(), cpu(), DType::f32, 1, {},
                    {virtual_devices(1), [](ParameterTable& table) {
                       place_blocks(table, {1, 0});
                     }});
    if (rounds) in_bf16(model.settings);
    const Schedule list = single_train_schedule(model.input(kTokens, kTokens), 1, true);
    const auto executor = model.executor(list);
    const TinyBatch batch({5, 4}, model.spec.vocabulary, 3);
    Trace trace;
    REQUIRE(TinyModel::run_traced(*executor, batch, trace));
    uint64_t sent = 0, copies = 0;
    for (const TaskTime& time : trace) {
      const Task& task = list.tasks[static_cast<size_t>(time.task)];
      const Value value = task.uses.empty() ? Value::ids : task.uses[0].port.value;
      if (task.kind != TaskKind::copy || task.layer != 0) continue;
      if (value != Value::normed && value != Value::normed_sent) continue;
      sent += time.bytes;
      ++copies;
    }
    const auto elements = static_cast<uint64_t>(batch.tokens() * model.spec.hidden);
    CHECK(copies == 2);  // forward and recompute
    CHECK(sent == copies * elements * (rounds ? 2 : 4));
  }
}

}  // namespace
}  // namespace hearth::test
