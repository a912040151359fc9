// Experts divided among places in schedules: which parts are copied, who waits for whom, what
// validation refuses.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>

#include "layers/split.h"
#include "modes/pipeline.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

/// A model whose dense parts are at one place and whose experts are divided among others.
struct DividedModel {
  TinyModel model;
  DividedModel(Place dense, std::vector<Place> experts, int devices, int32_t hosts = 1,
               const JsonObject& config = {})
      : model(tiny_config(config), cpu_ops(), DType::f32, 1, {},
              places(dense, std::move(experts), devices, hosts)) {}

  Schedule train(int64_t micro_batches = 1, bool recompute = false) const {
    return pipeline_planner()
        .train(model.input(32, 32, micro_batches), micro_batches, recompute)
        .schedule;
  }

 private:
  static const OpSet& cpu_ops() {
    register_all_op_sets();
    return find_op_set("cpu");
  }
  static TinyPlaces places(Place dense, std::vector<Place> experts, int devices, int32_t hosts) {
    TinyPlaces result = places_of({hosts, devices, 1}, devices > 1);
    result.place_blocks = [=](ParameterTable& table) {
      place_blocks(table, Placement({{.place = dense}}, experts));
    };
    return result;
  }
};

const Task& first_of(const Schedule& list, TaskKind kind, Place part) {
  return *std::ranges::find_if(
      list.tasks, [=](const Task& t) { return t.kind == kind && t.part.place == part; });
}

TEST_CASE("parts: each place has a task for its experts, and copies carry its part alone") {
  // Three of five experts stay with the dense parts on device 1; two are on device 2.
  const DividedModel divided(1, {1, 2}, 2);
  const Schedule list = divided.train(1, true);
  std::map<Place, std::multiset<std::string>> tasks;
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::experts || task.layer != 0) continue;
    CHECK(task.part.place == task.place);
    tasks[task.place].insert(std::string(name_of(task.phase)) + " " +
                             std::to_string(task.part.experts));
  }
  CHECK(tasks[1] == std::multiset<std::string>{"backward 3", "forward 3", "recompute 3"});
  CHECK(tasks[2] == std::multiset<std::string>{"backward 2", "forward 2", "recompute 2"});
  std::multiset<std::string> copies;
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::copy || task.layer != 0 || task.part.all()) continue;
    CHECK(task.part.place == 2);
    CHECK(task.part.experts == 2);
    REQUIRE(task.uses.size() == 4);
    CHECK(task.uses[0].part == task.part);
    CHECK(task.uses[1].part == task.part);
    CHECK(task.uses[2].port.value == Value::route_offsets);
    CHECK(task.uses[3].port.value == Value::split);
    const auto place = [&](size_t use) {
      return list.buffers[static_cast<size_t>(task.uses[use].buffer)].place;
    };
    copies.insert(std::string(name_of(task.phase)) + " " +
                  std::string(info_of(task.uses[0].port.value).name) + " " +
                  std::to_string(place(0)) + " " + std::to_string(place(1)));
  }
  const std::multiset<std::string> expected = {"forward expert_out 2 1", "backward row_weight 1 2",
                                               "backward d_rows 2 1", "backward d_row_weight 2 1"};
  CHECK(copies == expected);
  // Tokens, not rows, go to a place, whose experts read them through the routing.
  std::multiset<std::string> tokens;
  for (const Task& task : list.tasks) {
    if (task.layer < 0 || task.layer > 1) continue;
    const std::string phase(name_of(task.phase));
    const Value value = task.uses[0].port.value;
    const bool of_token = (value == Value::normed && task.layer == 0) ||
                          (value == Value::d_residual && task.layer == 1);
    if (task.kind == TaskKind::copy && of_token && task.place == 2) {
      tokens.insert(phase + " " + std::string(info_of(value).name));
    }
    const bool spreads = task.kind == TaskKind::dispatch || task.kind == TaskKind::combine;
    CHECK_FALSE((spreads && !task.part.all()));
  }
  CHECK(tokens ==
        std::multiset<std::string>{"forward normed", "recompute normed", "backward d_residual"});
}

TEST_CASE("parts: the rows of a place cross its link once in each direction, counted in bytes") {
  // Every choice of a token is one of five experts: rows of parts add up to all rows.
  for (const int32_t hosts : {1, 2}) {
    std::vector<Place> places(static_cast<size_t>(hosts + 2));
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<Place>(i);
    const Place dense = hosts;
    DividedModel divided(dense, {static_cast<Place>(hosts + 1), 0}, 2, hosts);
    const Schedule list = divided.train();
    const auto executor = divided.model.executor(list);
    const TinyBatch batch({5, 4}, divided.model.spec.vocabulary, 3);
    Trace trace;
    REQUIRE(TinyModel::run_traced(*executor, batch, trace));
    std::map<std::string, uint64_t> bytes;
    for (const TaskTime& time : trace) {
      const Task& task = list.tasks[static_cast<size_t>(time.task)];
      if (task.kind != TaskKind::copy || task.layer != 0 || task.part.all()) continue;
      bytes[std::string(info_of(task.uses[0].port.value).name)] += time.bytes;
    }
    const auto rows = static_cast<uint64_t>(batch.tokens() * divided.model.spec.experts_per_token);
    const uint64_t wide = rows * static_cast<uint64_t>(divided.model.spec.hidden) * sizeof(float);
    for (const char* value : {"expert_out", "d_rows"}) {
      INFO(value);
      CHECK(bytes[value] == wide);
    }
    CHECK(bytes["row_weight"] == rows * sizeof(float));
    CHECK(bytes["d_row_weight"] == rows * sizeof(float));
  }
}

TEST_CASE("parts: tasks that write different parts do not wait for each other") {
  const DividedModel divided(1, {1, 2, 3}, 3);
  const Schedule list = divided.train();
  const auto before = dependencies(list);
  std::vector<TaskId> copies, combines;
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& task = list.tasks[t];
    if (task.phase != Phase::forward || task.layer != 0) continue;
    const auto id = static_cast<TaskId>(t);
    const bool own = task.kind == TaskKind::experts && task.place == 1;
    const bool back = task.kind == TaskKind::copy && !task.part.all() &&
                      task.uses[0].port.value == Value::expert_out;
    if (own || back) copies.push_back(id);
    if (task.kind == TaskKind::combine) combines.push_back(id);
  }
  REQUIRE(copies.size() == 3);  // writers of the parts of one buffer
  REQUIRE(combines.size() == 1);
  // Of two writers none is before the other, not even by way of others.
  std::vector<std::set<TaskId>> all(list.tasks.size());
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    for (const TaskId b : before[t]) {
      all[t].insert(b);
      all[t].insert(all[static_cast<size_t>(b)].begin(), all[static_cast<size_t>(b)].end());
    }
  }
  for (const TaskId a : copies) {
    for (const TaskId b : copies) CHECK_FALSE(all[static_cast<size_t>(a)].contains(b));
    CHECK(all[static_cast<size_t>(combines[0])].contains(a));
  }
}

TEST_CASE("parts: validation refuses gaps, overlaps, and parts without offsets") {
  const DividedModel divided(1, {1, 2, 3}, 3);
  const Schedule good = divided.train();
  CHECK_NOTHROW(validate(good));
  const auto refused = [&](const std::function<void(Schedule&)>& change) {
    Schedule list = good;
    change(list);
    CHECK_THROWS_AS(validate(list), std::logic_error);
  };
  // The copy that brings results of a place to the dense parts.
  const auto result_copy = [](Schedule& list, Place part) -> Task& {
    return *std::ranges::find_if(list.tasks, [=](const Task& t) {
      return t.kind == TaskKind::copy && t.uses[0].port.value == Value::expert_out &&
             t.part.place == part;
    });
  };
  const auto set_part = [](Task& copy, Place part) {
    copy.part.place = copy.uses[1].part.place = part;
  };
  REQUIRE(first_of(good, TaskKind::experts, 2).place == 2);
  refused([&](Schedule& list) { set_part(result_copy(list, 2), 3); });  // 3 twice, 2 not
  refused([&](Schedule& list) { set_part(result_copy(list, 2), 0); });  // of nobody's experts
  refused([&](Schedule& list) {                                         // a part is not brought
    Task& copy = result_copy(list, 3);
    list.tasks.erase(list.tasks.begin() + (&copy - list.tasks.data()));
  });
  refused([&](Schedule& list) { result_copy(list, 2).uses.pop_back(); });  // no split
  refused([&](Schedule& list) {                                            // no offsets
    std::vector<BufferUse>& uses = result_copy(list, 2).uses;
    uses.erase(uses.begin() + 2);
  });
  refused([&](Schedule& list) {  // a task that reads a part which nobody brought
    for (Task& task : list.tasks) {
      for (BufferUse& use : task.uses) {
        const bool reads = task.kind == TaskKind::experts && use.port.value == Value::row_weight;
        if (reads && task.place == 2) use.part.place = 3;
      }
    }
  });
}

TEST_CASE("parts: a divided layer has a split before all that reads it, others have none") {
  const DividedModel divided(1, {1, 2}, 2, 1,
                             {{"num_hidden_layers", 3}, {"mlp_only_layers", JsonArray{1}}});
  const Schedule list = divided.train(2, true);
  std::map<int32_t, int> decides;
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::decide) continue;
    CHECK(task.place == kHostPlace);
    ++decides[task.layer];
  }
  CHECK(decides == std::map<int32_t, int>{{0, 2}, {2, 2}});  // one for each micro-batch
  const DividedModel together(1, {2}, 2);
  CHECK(std::ranges::none_of(together.train().tasks,
                             [](const Task& t) { return t.kind == TaskKind::decide; }));
}

TEST_CASE("parts: the split of the homes has each expert once, place after place") {
  DividedModel divided(1, {1, 2}, 2, 1, {{"num_experts", 7}});
  ParameterTable& table = divided.model.table;
  const BlockId first = table.find_block(BlockKind::expert, 1, 0);
  const std::vector<Place> homes = {2, 0, 2, 1, 0, 0, 2};
  for (size_t e = 0; e < homes.size(); ++e) {
    table.set_place(first + static_cast<BlockId>(e), homes[e]);
  }
  std::vector<int32_t> split(7 + 4 + 1, -1), position(7, -1);
  split_by_home(table, 1, split, position);
  CHECK(split == std::vector<int32_t>{1, 4, 5, 3, 0, 2, 6, 0, 3, 4, 7, 7});
  CHECK(position == std::vector<int32_t>{4, 0, 5, 3, 1, 2, 6});
  const SplitView view(split, 7);
  CHECK(view.positions(2) == std::pair(4, 7));
  CHECK(view.positions(3) == std::pair(7, 7));
  CHECK(view.expert(3) == 3);
  table.set_place(first, 9);
  CHECK_THROWS_AS(split_by_home(table, 1, split, position), std::logic_error);
}

TEST_CASE("parts: random stages and parts make valid lists for every pass") {
  register_all_op_sets();
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const PartsCase of{.hosts = 1 + static_cast<int32_t>(seed % 2),
                       .devices = 1 + static_cast<int32_t>(seed % 3),
                       .seed = seed};
    INFO("seed " << seed);
    const TinyModel model(tiny_config({{"num_hidden_layers", 3}, {"num_experts", 7}}),
                          find_op_set("cpu"), DType::f32, 1, {}, places_of(of, seed % 4 < 2));
    for (const Planner* planner : planners()) {
      if (planner->name() == "zebra") continue;  // of several ranks alone: test_zebra.cpp
      for (const bool recompute : {false, true}) {
        CHECK_NOTHROW(planner->train(model.input(32, 32, 3), 2, recompute));
      }
      CHECK_NOTHROW(planner->eval(model.input(32, 32)));
      CHECK_NOTHROW(planner->decode(model.input(1, 32), 32));
    }
  }
}

TEST_CASE("parts: work of the host for two devices has a stream for each") {
  register_all_op_sets();
  TinyPlaces places = places_of({2, 2, 1}, true);
  places.place_blocks = [](ParameterTable& table) {
    place_blocks(table, Placement({{2, -1, 0}, {3, 1, 9}}, {0, 1}));
  };
  const TinyModel model(tiny_config(), find_op_set("cpu"), DType::f32, 1, {}, places);
  const Schedule list = pipeline_planner().train(model.input(32, 32, 4), 4, false).schedule;
  std::map<std::pair<Place, int32_t>, std::set<int32_t>> lanes;  // of experts, by place and layer
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::experts) continue;
    const StreamPlan& stream = list.streams[static_cast<size_t>(task.stream)];
    CHECK(stream.place == task.place);
    lanes[{task.place, task.layer}].insert(stream.lane);
  }
  REQUIRE(lanes.size() == 4);
  for (const auto& [at, of] : lanes) CHECK(of == std::set<int32_t>{at.second});
}

}  // namespace
}  // namespace hearth::test
