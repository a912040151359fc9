// Partial sums: a place with experts returns one sum per token instead of a row per choice. The bits
// change, so steps are compared with f64 and with the rows coming back one by one.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>
#include <set>

#include "modes/pipeline.h"
#include "runtime/model_cases.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

Steps sums_of(const ModelCase& model, uint64_t seed, bool sums) {
  const PartsCase parts{.hosts = 1 + static_cast<int32_t>(seed % 2),
                        .devices = 2 + static_cast<int32_t>(seed / 2 % 2),
                        .seed = seed};
  Steps steps(model.config);
  steps.adapters = model.adapters;
  steps.places = places_of(parts, seed % 3 != 0);
  steps.planner = seed % 4 == 0 ? &single_planner() : &pipeline_planner();
  steps.group = 1 + static_cast<int64_t>(seed % 4);
  steps.recompute = seed % 5 < 2;
  steps.settings = [=](RunSettings& settings) { settings.partial_sums = sums; };
  return steps;
}

bool within(double a, double b, double relative) {
  return std::isfinite(a) && std::abs(a - b) <= relative * std::max(1.0, std::abs(b));
}

/// The names of the values that copies carry for a layer.
std::multiset<std::string> copied(const Schedule& list, int32_t layer) {
  std::multiset<std::string> names;
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::copy || task.layer != layer) continue;
    names.insert(std::string(info_of(task.uses[0].port.value).name));
  }
  return names;
}

TEST_CASE("partial sums: losses and norms are those of f64 within the bound, for every model") {
  size_t changed = 0, cases = 0;
  for (const ModelCase& model : models()) {
    Steps exact(model.config);
    exact.adapters = model.adapters;
    exact.type = DType::f64;
    exact.count = 1;
    const Outcome of_f64 = exact.run();
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      INFO("seed " << seed);
      Steps steps = sums_of(model, seed, true);
      steps.count = 1;
      const Schedule list = steps.list();
      const bool sums = std::ranges::any_of(list.tasks, [](const Task& task) {
        return task.kind == TaskKind::copy && task.uses[0].port.value == Value::expert_sum;
      });
      const Outcome outcome = steps.run();
      CHECK(within(outcome.loss, of_f64.loss, 1e-6));
      CHECK(within(outcome.aux_loss, of_f64.aux_loss, 1e-6));
      CHECK(within(outcome.norm, of_f64.norm, 1e-5));
      CHECK(steps.run() == outcome);  // the same bits in each run
      Steps rows = sums_of(model, seed, false);
      rows.count = 1;
      const Outcome by_rows = rows.run();
      CHECK(outcome.counts.size() == by_rows.counts.size());
      if (!sums) CHECK(outcome == by_rows);
      cases += sums ? 1 : 0;
      changed += outcome == by_rows ? 0 : 1;
    }
  }
  CHECK(cases >= 10);
  CHECK(2 * changed > cases);  // otherwise the option does nothing
}

TEST_CASE("partial sums: any legal order gives the same bits, freed addresses poisoned") {
  for (const uint64_t seed : {1, 4, 6, 9}) {
    for (const ModelCase& model : models()) {
      INFO("seed " << seed);
      Steps steps = sums_of(model, seed, true);
      const Outcome expected = steps.run();
      steps.options.poison = true;
      const Schedule list = steps.list();
      for (uint64_t order = 1; order <= 2; ++order) {
        steps.options.order = random_order(list, 10 * seed + order);
        REQUIRE(steps.options.order.size() == list.tasks.size());
        CHECK(steps.run() == expected);
      }
    }
  }
}

TEST_CASE("partial sums: the part of one place left out is noticed") {
  const ModelCase model = models()[0];
  int planted = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Steps steps = sums_of(model, seed, true);
    const Outcome expected = steps.run();
    for (const Value value : {Value::expert_sum, Value::d_row_sum}) {
      const auto of_value = [value](const Task& task) {
        return task.kind == TaskKind::copy && task.uses[0].port.value == value;
      };
      if (std::ranges::none_of(steps.list().tasks, of_value)) continue;
      ++planted;
      INFO("seed " << seed << ", " << info_of(value).name);
      Steps faulty = sums_of(model, seed, true);
      faulty.change_list = [&](Schedule& list) {
        std::ranges::find_if(list.tasks, of_value)->uses[0].port.cols = 0;
      };
      CHECK_FALSE(faulty.run() == expected);
    }
  }
  CHECK(planted >= 6);
}

/// Three layers with six experts on device 1, of which device 2 and the host compute some.
TinyPlaces divided_places(const std::vector<Place>& of_expert) {
  TinyPlaces places;
  places.devices = virtual_devices(2);
  places.place_blocks = [=](ParameterTable& table) {
    for (BlockId id = 0; id < static_cast<BlockId>(table.blocks().size()); ++id) {
      const Block& block = table.block(id);
      const bool expert = block.kind == BlockKind::expert;
      table.set_place(
          id, expert ? of_expert[static_cast<size_t>(block.expert) % of_expert.size()] : Place{1});
    }
  };
  return places;
}

TEST_CASE("partial sums: a place elsewhere returns one vector per token, counted in bytes") {
  for (const std::vector<Place>& places : {std::vector<Place>{1, 2, 0}, std::vector<Place>{0}}) {
    for (const bool shared : {false, true}) {
      JsonObject config = {{"num_hidden_layers", Json(int64_t{2})},
                           {"num_experts_per_tok", Json(int64_t{3})}};
      if (shared) {
        config.emplace_back("model_type", "qwen2_moe");
        config.emplace_back("shared_expert_intermediate_size", int64_t{9});
      }
      TinyModel model(tiny_config(config), cpu(), DType::f32, 1, {}, divided_places(places));
      model.settings.partial_sums = true;
      const Schedule list = single_train_schedule(model.input(kTokens, kTokens), 1, false);
      const auto executor = model.executor(list);
      const TinyBatch batch({5, 4}, model.spec.vocabulary, 3);
      Trace trace;
      REQUIRE(TinyModel::run_traced(*executor, batch, trace));
      std::map<std::string, uint64_t> bytes;
      for (const TaskTime& time : trace) {
        const Task& task = list.tasks[static_cast<size_t>(time.task)];
        if (task.kind != TaskKind::copy || task.layer != 0) continue;
        bytes[std::string(info_of(task.uses[0].port.value).name)] += time.bytes;
      }
      const auto elsewhere = static_cast<uint64_t>(places.size() == 1 ? 1 : 2);
      const auto vectors =
          static_cast<uint64_t>(batch.tokens() * model.spec.hidden) * sizeof(float) * elsewhere;
      INFO("places " << places.size() << ", shared " << shared);
      CHECK(bytes["expert_sum"] == vectors);
      CHECK(bytes["d_row_sum"] == vectors);
      for (const char* rows : {"expert_out", "d_rows", "mid", "d_normed"}) {
        CHECK_FALSE(bytes.contains(rows));
      }
      CHECK(copied(list, 0).count("expert_sum") == elsewhere);
    }
  }
}

TEST_CASE("partial sums: experts beside their layer's dense parts change nothing") {
  for (const std::vector<Place>& places : {std::vector<Place>{1}, std::vector<Place>{0, 1}}) {
    TinyModel model(tiny_config(), cpu(), DType::f32, 1, {}, divided_places(places));
    const size_t before =
        single_train_schedule(model.input(kTokens, kTokens), 1, false).tasks.size();
    model.settings.partial_sums = true;
    const size_t tasks =
        single_train_schedule(model.input(kTokens, kTokens), 1, false).tasks.size();
    CHECK((tasks == before) == (places.size() == 1));
  }
}

}  // namespace
}  // namespace hearth::test
