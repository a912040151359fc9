// Lists over several places: which copies they have, where values end, what validation refuses.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>

#include "plan/addresses.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

/// A model whose blocks lie where `place` puts them, planned for `devices` devices.
struct PlacedModel {
  TinyModel model;
  PlacedModel(const JsonObject& config, int devices,
              const std::function<void(ParameterTable&)>& place,
              const std::vector<std::string>& adapters = {})
      : model(tiny_config(config), find_op_set("cpu"), DType::f32, 1, adapters,
              {virtual_devices(devices), place}) {}

  Schedule train(int64_t micro_batches = 1, bool recompute = false) const {
    return single_train_schedule(model.input(32, 32, micro_batches), micro_batches, recompute);
  }
};

PlacedModel placed(const Placement& placement, int devices = 1) {
  register_all_op_sets();
  return {{}, devices, [=](ParameterTable& table) { place_blocks(table, placement); }};
}

const Placement kMixed{1, kHostPlace};

std::multiset<std::string> copies_of(const Schedule& list) {
  std::multiset<std::string> copies;
  for (const Task& task : list.tasks) {
    if (task.kind != TaskKind::copy) continue;
    const auto to = static_cast<size_t>(task.uses[1].buffer);
    copies.insert(std::string(info_of(task.uses[0].port.value).name) + " to " +
                  std::to_string(list.buffers[to].place));
  }
  return copies;
}

std::vector<std::string> printed(const Schedule& list) {
  std::vector<std::string> lines;
  for (const Task& task : list.tasks) {
    lines.push_back(list.streams[static_cast<size_t>(task.stream)].name + ": " + describe(task));
  }
  return lines;
}

TEST_CASE("placement: the list of attention on a device and experts on the host") {
  register_all_op_sets();
  const PlacedModel placed({{"num_hidden_layers", Json(int64_t{1})}}, 1,
                           [](ParameterTable& table) { place_blocks(table, kMixed); });
  const std::string in = "place 1 copy in: copy ", out = "place 1 copy out: copy ";
  const std::string device = "place 1 compute: ", m = " micro-batch 0 at place 1";
  const std::vector<std::string> expected = {
      in + "forward of ids" + m,
      device + "embed forward layer 0" + m,
      in + "forward of query_offsets" + m,
      in + "forward of key_offsets" + m,
      in + "forward of positions" + m,
      in + "forward of rope_cosine at place 1",
      in + "forward of rope_sine at place 1",
      device + "attention forward layer 0" + m,
      out + "forward of choice layer 0" + m,
      out + "forward of weight layer 0" + m,
      "compute: dispatch forward layer 0 micro-batch 0",
      out + "forward of normed layer 0" + m,
      "compute: experts forward layer 0 micro-batch 0",
      in + "forward of route_row_of layer 0" + m,
      in + "forward of expert_out layer 0" + m,
      device + "combine forward layer 0" + m,
      in + "forward of labels" + m,
      device + "head forward layer 1" + m,
      out + "backward of d_residual layer 1" + m,
      "compute: experts backward layer 0 micro-batch 0",
      "compute: dispatch backward layer 0 micro-batch 0",
      in + "backward of d_weight layer 0" + m,
      in + "backward of d_normed layer 0" + m,
      device + "attention backward layer 0" + m,
      device + "embed backward layer 0" + m,
      "compute: norm forward",
      device + "norm forward at place 1",
      out + "forward of tensor_norms layer 1 at place 1",
      "compute: clip forward",
      device + "update forward at place 1",
      "compute: update forward layer 0",
      device + "update forward layer 0 at place 1",
      device + "update forward layer 1 at place 1",
      out + "forward of router_counts layer 0" + m,
      out + "forward of loss" + m,
      out + "forward of aux_loss" + m,
      out + "forward of z_loss" + m,
  };
  CHECK(printed(placed.train()) == expected);
}

/// Which values are copied between the dense parts at the device and the experts at the host.
std::multiset<std::string> copied_for_experts(int64_t choices, bool shared) {
  JsonObject config = {{"num_hidden_layers", Json(int64_t{1})}, {"num_experts_per_tok", choices}};
  if (shared) {
    config.emplace_back("model_type", "qwen2_moe");
    config.emplace_back("shared_expert_intermediate_size", int64_t{9});
  }
  const PlacedModel placed(config, 1, [](ParameterTable& table) { place_blocks(table, kMixed); });
  const Schedule list = placed.train();
  std::multiset<std::string> values;
  for (const Task& task : list.tasks) {
    const bool of_layer = task.kind == TaskKind::copy && task.layer >= 0 &&
                          task.uses[0].port.value != Value::router_counts &&
                          task.uses[0].port.value != Value::tensor_norms;
    if (of_layer) values.insert(std::string(info_of(task.uses[0].port.value).name));
  }
  return values;
}

TEST_CASE("placement: rows are summed with the experts where that moves fewer vectors") {
  register_all_op_sets();
  using Names = std::multiset<std::string>;
  const auto with = [](Names values) {
    values.merge(Names{"choice", "weight", "normed", "d_residual"});
    return values;
  };
  CHECK(copied_for_experts(1, false) == with({"route_row_of", "expert_out", "route_offsets",
                                              "route_source", "d_rows", "d_row_weight"}));
  CHECK(copied_for_experts(2, false) ==
        with({"route_row_of", "expert_out", "d_normed", "d_weight"}));
  CHECK(copied_for_experts(3, false) == with({"mid", "residual", "d_normed", "d_weight"}));
  CHECK(copied_for_experts(3, true) ==
        with({"route_row_of", "expert_out", "d_normed", "d_normed", "d_weight"}));
}

TEST_CASE("placement: nothing is copied where all is at one place, but what comes and goes") {
  CHECK(copies_of(placed({}).train(3)).empty());
  CHECK(copies_of(placed({}, 0).train(3)).empty());
  const auto copies = copies_of(placed({1, 1}).train(3));
  const std::map<std::string, size_t> expected = {
      {"ids to 1", 3},           {"labels to 1", 3},       {"positions to 1", 3},
      {"query_offsets to 1", 3}, {"key_offsets to 1", 3},  {"rope_cosine to 1", 1},
      {"rope_sine to 1", 1},     {"tensor_norms to 0", 1}, {"loss to 0", 3},
      {"aux_loss to 0", 3},      {"z_loss to 0", 3},       {"router_counts to 0", 6}};
  size_t count = 0;
  for (const auto& [copy, times] : expected) {
    INFO(copy);
    CHECK(copies.count(copy) == times);
    count += times;
  }
  CHECK(copies.size() == count);
}

TEST_CASE(
    "placement: the same tasks in the same order at every device, and of one micro-batch "
    "anywhere") {
  const auto tasks_of = [](const Schedule& list) {
    std::vector<std::string> names;
    for (const Task& task : list.tasks) {
      if (task.kind == TaskKind::copy) continue;
      const std::string name = describe(task);
      names.push_back(name.substr(0, name.find(" at place")));
    }
    return names;
  };
  const auto on_host = tasks_of(placed({}).train(1, true));
  CHECK(tasks_of(placed({1, 1}).train(1, true)) == on_host);
  const auto on_device = tasks_of(placed({1, 1}).train(2, true));
  CHECK(tasks_of(placed({2, 2}, 2).train(2, true)) == on_device);
  // The host's experts compute both micro-batches in one task: in two layers and three phases.
  CHECK(tasks_of(placed({}).train(2, true)).size() == on_device.size() - 6);
}

TEST_CASE("placement: kept values end on the host, scalars of bodies stay there") {
  for (const Placement& placement : {Placement{1, 1}, kMixed, Placement{0, 1}, Placement{1, 2}}) {
    const PlacedModel p = placed(placement, 2);
    for (const Schedule& list :
         {p.train(2), p.train(2, true), single_eval_schedule(p.model.input(32, 32)),
          single_decode_schedule(p.model.input(1, 32), 32)}) {
      const auto end = static_cast<TaskId>(list.tasks.size()) - 1;
      std::set<std::tuple<Value, int32_t, int32_t>> made, kept;
      for (const Buffer& b : list.buffers) {
        const ValueInfo& info = info_of(b.port.value);
        if (info.host) CHECK(b.place == kHostPlace);
        if (b.use == BufferClass::given) CHECK(b.place == kHostPlace);
        if (!info.kept) continue;
        made.insert({b.port.value, b.layer, b.micro_batch});
        if (b.place == kHostPlace && b.last == end) {
          kept.insert({b.port.value, b.layer, b.micro_batch});
        }
      }
      CHECK(made == kept);
      CHECK(!made.empty());
    }
  }
}

TEST_CASE("placement: addresses are of the arena of their place") {
  const Schedule on_host = placed({}).train(2), on_device = placed({1, 1}).train(2);
  REQUIRE(on_host.arena_bytes.size() == 2);
  CHECK(on_host.arena_bytes[1] == 0);
  // The host keeps what comes and goes; the device has the rest, and copies of what comes.
  CHECK(on_device.arena_bytes[0] * 4 < on_host.arena_bytes[0]);
  CHECK(on_device.arena_bytes[1] <= on_host.arena_bytes[0] + (on_host.arena_bytes[0] >> 4));
  CHECK(on_device.scratch[1].shared == on_host.scratch[0].shared);
  CHECK(on_device.scratch[0].shared == 0);
  CHECK(on_host.scratch[1].shared == 0);

  std::vector<Buffer> two(2);
  two[0].bytes = two[1].bytes = 64;
  two[0].last = two[1].last = 3;
  two[1].place = 1;
  CHECK(assign_addresses(two, 3) == std::vector<size_t>{64, 64, 0});
  CHECK(two[0].address == two[1].address);
  CHECK(!live_buffers_overlap(two));
  two[1].place = kHostPlace;
  CHECK(live_buffers_overlap(two));
}

TEST_CASE("placement: reuse of an address is a dependency at its place alone") {
  Schedule list;
  list.places = places_of_rank(2);
  list.arena_bytes = {64, 64};
  list.scratch.resize(2);
  list.streams = {StreamPlan{}, {"device", 1, StreamUse::compute}};
  list.buffers.resize(2);
  list.tasks.resize(2);
  for (size_t i = 0; i < 2; ++i) {
    list.buffers[i].bytes = 64;
    list.buffers[i].place = static_cast<Place>(i);
    list.tasks[i].place = static_cast<Place>(i);
    list.tasks[i].stream = static_cast<int32_t>(i);
    Port port{Value::residual, Access::write};
    list.tasks[i].uses = {{static_cast<BufferId>(i), port}};
  }
  CHECK(dependencies(list)[1].empty());
  list.buffers[1].place = kHostPlace;
  CHECK(dependencies(list)[1] == std::vector<TaskId>{0});
}

TEST_CASE("placement: inputs and results lie on the host of the rank that computes") {
  register_all_op_sets();
  const TinyModel model(tiny_config(), find_op_set("cpu"), DType::f32, 1, {},
                        {virtual_devices(2), [](ParameterTable& table) {
                           for (BlockId b = 0; b < std::ssize(table.blocks()); ++b) {
                             table.set_place(b, 2);
                           }
                         }});
  PlanInput input = model.input(32, 32);
  input.places = {{}, {.rank = 1, .host = 1}, {.rank = 1, .host = 1, .device = true}};
  Schedule list = single_eval_schedule(input);
  CHECK(list.arena_bytes[0] == 0);
  CHECK(list.arena_bytes[1] > 0);
  size_t copies = 0;
  for (const Task& task : list.tasks) {
    CHECK(task.place == 2);
    copies += task.kind == TaskKind::copy;
  }
  CHECK(copies > 0);
  list.places[2].host = 0;
  CHECK_THROWS_AS(validate(list), std::logic_error);
  list.places[2].host = 2;
  list.places[1].host = 2;  // in a circle
  CHECK_THROWS_AS(validate(list), std::logic_error);
}

TEST_CASE("placement: any placement of layers makes a valid list") {
  register_all_op_sets();
  const std::vector<JsonObject> configs = {
      {{"num_hidden_layers", Json(int64_t{3})}, {"mlp_only_layers", JsonArray{1}}},
      {{"tie_word_embeddings", true}},
      {{"model_type", "qwen2_moe"}, {"shared_expert_intermediate_size", 9}}};
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const PlacedModel p(
        configs[seed % configs.size()], 2,
        [=](ParameterTable& table) { place_at_random(table, 3, seed); },
        seed % 2 == 0 ? std::vector<std::string>{"attention", "experts"}
                      : std::vector<std::string>{});
    for (const bool recompute : {false, true}) {
      const Schedule list = p.train(2, recompute);
      CHECK_NOTHROW(validate(list));
      // A value is copied to a place once, until it is made anew.
      std::set<std::pair<BufferId, Place>> copied;
      for (const Task& task : list.tasks) {
        if (task.kind != TaskKind::copy) continue;
        const auto to = static_cast<size_t>(task.uses[1].buffer);
        const auto from = static_cast<size_t>(task.uses[0].buffer);
        CHECK(list.buffers[to].port.bytes(7) == list.buffers[from].port.bytes(7));
        CHECK(copied.emplace(task.uses[0].buffer, list.buffers[to].place).second);
      }
    }
    CHECK_NOTHROW(single_eval_schedule(p.model.input(32, 32)));
    CHECK_NOTHROW(single_decode_schedule(p.model.input(1, 32), 32));
  }
}

TEST_CASE("placement: every place with blocks has its norm and updates, each block one") {
  const Schedule list = placed({1, 2}, 2).train();
  std::multiset<Place> norms;
  std::map<BlockId, int> updated;
  size_t clip = 0;
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& task = list.tasks[t];
    if (task.kind == TaskKind::norm) norms.insert(task.place);
    if (task.kind == TaskKind::clip) clip = t;
    if (task.kind != TaskKind::update) continue;
    CHECK(clip > 0);
    for (const BlockUse& use : task.blocks) {
      for (BlockId b = use.begin; b < use.end; ++b) ++updated[b];
    }
  }
  CHECK(norms == std::multiset<Place>{1, 2});
  CHECK(updated.size() == placed({}).model.table.blocks().size());
  for (const auto& [block, times] : updated) CHECK(times == 1);
  const auto before = dependencies(list);
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    if (list.tasks[t].kind != TaskKind::update) continue;
    CHECK(std::ranges::count(before[t], static_cast<TaskId>(clip)) == 1);
  }
}

TEST_CASE("placement: validation finds what is at another place") {
  const Schedule good = placed(kMixed).train();
  const auto refused = [&](const std::function<void(Schedule&)>& change) {
    Schedule list = good;
    change(list);
    CHECK_THROWS_AS(validate(list), std::logic_error);
  };
  const auto first = [](Schedule& list, TaskKind kind) -> Task& {
    return *std::ranges::find_if(list.tasks, [=](const Task& t) { return t.kind == kind; });
  };
  CHECK_NOTHROW(validate(good));
  refused([&](Schedule& list) { first(list, TaskKind::experts).stream = 1; });
  refused([&](Schedule& list) { first(list, TaskKind::experts).stream = 9; });
  refused([&](Schedule& list) {  // reads what stayed on the device
    const BufferId normed = first(list, TaskKind::attention).uses.back().buffer;
    first(list, TaskKind::experts).uses.front().buffer = normed;
  });
  refused([&](Schedule& list) {  // from a buffer to itself
    Task& copy = first(list, TaskKind::copy);
    copy.uses[0].buffer = copy.uses[1].buffer;
  });
  refused([&](Schedule& list) { first(list, TaskKind::copy).uses.pop_back(); });
  refused([&](Schedule& list) { list.buffers.back().place = 2; });
}

TEST_CASE("placement: a block at another place than its task is a bug") {
  PlacedModel wrong = placed({});
  wrong.model.table.set_place(wrong.model.table.find_block(BlockKind::router, 0), 1);
  CHECK_THROWS_AS(wrong.train(), std::logic_error);
}

TEST_CASE("placement: adapters go with their bases") {
  register_all_op_sets();
  const PlacedModel p({}, 1, [](ParameterTable& table) { place_blocks(table, kMixed); },
                      {"attention", "experts"});
  int64_t at[2] = {0, 0};
  for (const Block& block : p.model.table.blocks()) {
    if (block.kind != BlockKind::adapter) continue;
    const Block& base = p.model.table.block(block.base);
    CHECK(block.place == base.place);
    CHECK(block.place == (base.kind == BlockKind::expert ? kHostPlace : 1));
    ++at[block.place];
  }
  CHECK(at[0] > 0);
  CHECK(at[1] > 0);
}

TEST_CASE("placement: the planner keeps every place within its budget") {
  const PlacedModel p = placed({1, 1});
  const PlanInput input = p.model.input(32, 32, 4);
  const auto at = [&](int64_t group) {
    return single_train_schedule(input, group, false).arena_bytes;
  };
  constexpr uint64_t kMuch = uint64_t{1} << 40;
  CHECK(single_train_within(input, {}, {kMuch, kMuch}).group == 4);
  CHECK(single_train_within(input, {}, {kMuch}).group == 4);
  CHECK(single_train_within(input, {}, {kMuch, at(3)[1]}).group == 3);
  CHECK(single_train_within(input, {}, {kMuch, at(3)[1] - 1}).group == 2);
  CHECK(single_train_within(input, {}, {kMuch, at(1)[1] - 1}).recompute);
}

TEST_CASE("placement: a trace has a process a place") {
  const Schedule list = placed(kMixed).train();
  const std::string places[] = {"host", "cuda:0"};
  const Json trace =
      parse_json(chrome_trace(list, {{0, 0.5, 0.75, 640}, {12, 0.75, 1.5}}, places), "trace");
  const JsonArray& all = trace.find("traceEvents")->as_array();
  REQUIRE(all.size() == 8);  // two places, four streams, two tasks
  CHECK(all[1].find("args")->find("name")->as_string() == "cuda:0");
  const std::span events = std::span(all).subspan(2);
  const auto number = [](const Json& event, const char* key) {
    return static_cast<int>(event.find(key)->as_double());
  };
  CHECK(number(events[0], "pid") == 0);
  CHECK(number(events[3], "pid") == 1);
  CHECK(number(events[4], "pid") == 1);  // a copy to the device
  CHECK(number(events[4], "tid") == 2);
  CHECK(events[4].find("cat")->as_string() == "copy");
  const Json& carried = *events[4].find("args");
  CHECK(carried.find("task")->as_int() == 0);
  CHECK(carried.find("link")->as_string() == "host->cuda:0");
  CHECK(carried.find("bytes")->as_int() == 640);
  CHECK(carried.find("block")->is_null());
  CHECK(carried.find("value")->as_string() == "ids");
  CHECK(number(events[5], "pid") == 0);  // E
}

}  // namespace
}  // namespace hearth::test
