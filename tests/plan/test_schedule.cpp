// Schedules: what validation refuses, addresses, dependencies.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>

#include "modes/layer_tasks.h"
#include "plan/addresses.h"
#include "plan/trace.h"
#include "support/tiny_model.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

Schedule train_list(int64_t group = 2, bool recompute = false) {
  return single_train_schedule(shared_tiny_model().input(32, 32, 4), group, recompute);
}

TEST_CASE("schedule: buffers that live at the same time never overlap, and lie in the arena") {
  for (const bool recompute : {false, true}) {
    for (const int64_t group : {1, 2, 3, 4}) CHECK_NOTHROW(validate(train_list(group, recompute)));
  }
}

TEST_CASE("schedule: the arena is little more than what lives at once") {
  register_all_op_sets();
  const TinyModel deep(tiny_config({{"num_hidden_layers", Json(int64_t{12})}}), find_op_set("cpu"),
                       DType::f32);
  for (const int64_t group : {1, 3, 12}) {
    const Schedule list = single_train_schedule(deep.input(64, 64, 12), group, false);
    std::vector<size_t> born(list.tasks.size()), dead(list.tasks.size());
    for (const Buffer& b : list.buffers) {
      born[static_cast<size_t>(b.first)] += b.bytes;
      dead[static_cast<size_t>(b.last)] += b.bytes;
    }
    size_t alive = 0, most = 0;
    for (size_t t = 0; t < born.size(); ++t) {
      most = std::max(most, alive += born[t]);
      alive -= dead[t];
    }
    CHECK(list.arena_bytes[0] >= most);
    CHECK(static_cast<double>(list.arena_bytes[0]) < 1.03 * static_cast<double>(most));
  }
}

TEST_CASE("schedule: a group ends with its logical shard, and then the shard ends") {
  const TinyModel model(tiny_config(), find_op_set("cpu"), DType::f32);
  PlanInput input = model.input(64, 64, 8);
  for (const RankShards& shards : {RankShards{4, 1, 0}, RankShards{8, 2, 1}}) {
    input.shards = shards;  // two micro-batches each, or one
    for (const int64_t group : {1, 2, 8}) {
      const Schedule list = single_train_schedule(input, group, false);
      const int64_t of_shard = 8 / shards.count();
      int32_t ended = 0;
      for (const Task& task : list.tasks) {
        if (task.kind == TaskKind::shard) {
          CHECK(task.layer == ended++);
          CHECK(describe(task) == "shard backward " + std::to_string(task.layer));
        }
        if (task.rows.none()) continue;
        CHECK(task.rows.begin / of_shard == ended);
        CHECK((task.rows.end - 1) / of_shard == ended);
      }
      CHECK(ended == shards.count());
      for (const TaskKind kind : {TaskKind::reduce, TaskKind::gather, TaskKind::give}) {
        const auto of_kind = [&](const Task& task) { return task.kind == kind; };
        CHECK(std::ranges::any_of(list.tasks, of_kind) == (shards.ranks > 1));
      }
    }
  }
  input.shards = {2, 2, 0};  // one shard each: nothing to add
  for (const Task& task : single_train_schedule(input, 4, false).tasks) {
    CHECK(task.kind != TaskKind::shard);
  }
}

TEST_CASE("schedule: of several ranks, a layer waits for its own weights of the step before") {
  const TinyModel model(tiny_config(), find_op_set("cpu"), DType::f32);
  PlanInput input = model.input(64, 64, 4);
  input.shards = {4, 4, 1};
  input.rotates = true;
  const Schedule list = single_train_schedule(input, 1, false);
  const std::vector<std::vector<TaskId>> before = dependencies(list);
  std::vector<std::set<TaskId>> all(before.size());  // what each task follows
  std::set<TaskId> gives;
  int32_t waiting = 0;
  for (TaskId id = 0; id < std::ssize(list.tasks); ++id) {
    const Task& task = list.tasks[static_cast<size_t>(id)];
    std::set<TaskId>& of = all[static_cast<size_t>(id)];
    for (const TaskId earlier : before[static_cast<size_t>(id)]) {
      of.insert(earlier);
      of.insert(all[static_cast<size_t>(earlier)].begin(), all[static_cast<size_t>(earlier)].end());
    }
    CAPTURE(describe(task));
    if (task.kind == TaskKind::give) gives.insert(id);
    if (task.kind == TaskKind::update) CHECK(gives.empty());
    if (task.phase != Phase::forward || task.rows.none()) continue;
    for (const TaskId give : gives) {
      const Task& weights = list.tasks[static_cast<size_t>(give)];
      const auto reads = [&](const BlockUse& use) {
        return std::ranges::any_of(task.blocks, [&](const BlockUse& read) {
          return use.begin < read.end && read.begin < use.end;
        });
      };
      if (std::ranges::any_of(weights.blocks, reads)) CHECK(of.contains(give));
      waiting += of.contains(give) ? 0 : 1;
    }
  }
  CHECK(gives.size() > 1);
  CHECK(waiting > 0);  // some tasks do not wait for all weights
  CHECK(list.tasks.back().kind == TaskKind::clip);

  const Schedule drain = drain_schedule(input);
  const auto of_kind = [&](TaskKind kind) {
    return std::ranges::count_if(drain.tasks, [&](const Task& of) { return of.kind == kind; });
  };
  CHECK(of_kind(TaskKind::give) == std::ssize(gives));
  CHECK(of_kind(TaskKind::update) + of_kind(TaskKind::give) == std::ssize(drain.tasks));
}

TEST_CASE("schedule: all streams of a node share its updates") {
  std::map<Place, std::set<int32_t>> streams;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const TinyModel model(tiny_config(), find_op_set("cpu"), DType::f32, 1, {},
                          places_of({.hosts = 2, .devices = 2, .seed = seed}, true));
    PlanInput input = model.input(64, 64, 4);
    input.rotates = true;
    for (const Task& task : single_train_schedule(input, 4, false).tasks) {
      if (task.kind == TaskKind::update) streams[task.place].insert(task.stream);
    }
  }
  CHECK(streams.at(0).size() == 2);
  CHECK(streams.at(1).size() == 2);
  CHECK(streams.at(2).size() == 1);  // a device
}

TEST_CASE("schedule: experts of the host compute a group in one task, from equal distances") {
  for (const bool recompute : {false, true}) {
    const Schedule list = train_list(3, recompute);
    std::vector<std::string> experts;
    for (const Task& task : list.tasks) {
      if (task.kind != TaskKind::experts) {
        CHECK(task.rows.count() <= 1);
        continue;
      }
      if (task.layer != 0) continue;
      experts.push_back(describe(task));
      // Each micro-batch touches buffers of its own, all of them as far apart as the others' rows.
      const auto count = static_cast<size_t>(std::max(1, task.rows.count()));
      for (size_t use = 0; use + 1 < task.uses.size(); ++use) {
        if (use % count + 1 == count) continue;
        const Buffer& one = list.buffers[static_cast<size_t>(task.uses[use].buffer)];
        const Buffer& next = list.buffers[static_cast<size_t>(task.uses[use + 1].buffer)];
        CHECK(next.micro_batch == one.micro_batch + 1);
        const size_t row = static_cast<size_t>(one.port.cols) * size_of(one.port.dtype);
        const size_t rows = (next.address - one.address) / row;
        // 32 tokens, with two choices each.
        const auto rows_per_token = static_cast<size_t>(one.port.rows_per_token);
        if (rows_per_token > 0) CHECK(rows == 32 * rows_per_token);
      }
    }
    std::vector<std::string> expected;
    for (const std::string phase : {"forward", "recompute", "backward"}) {
      if (phase == "recompute" && !recompute) continue;
      expected.push_back("experts " + phase + " layer 0 micro-batches 0 to 2");
    }
    expected.push_back("experts forward layer 0 micro-batch 3");
    if (recompute) expected.push_back("experts recompute layer 0 micro-batch 3");
    expected.push_back("experts backward layer 0 micro-batch 3");
    CHECK(experts == expected);
  }
}

TEST_CASE("schedule: experts with many rows compute each micro-batch apart") {
  // Two of five experts per token.
  const auto most_together = [](int64_t tokens) {
    const Schedule list = single_train_schedule(shared_tiny_model().input(tokens, 32, 4), 4, false);
    int32_t most = 0;
    for (const Task& task : list.tasks) most = std::max(most, task.rows.count());
    return most;
  };
  CHECK(most_together(kManyExpertRows * 5 / 2 - 1) == 4);
  CHECK(most_together(kManyExpertRows * 5 / 2) == 1);
}

TEST_CASE("schedule: validation finds micro-batches at unequal distances") {
  Schedule list = train_list(3);
  const auto task =
      std::ranges::find_if(list.tasks, [](const Task& t) { return t.rows.count() == 3; });
  REQUIRE(task != list.tasks.end());
  const auto swapped = [&](size_t a, size_t b) {
    Schedule other = list;
    std::vector<BufferUse>& uses = other.tasks[static_cast<size_t>(task - list.tasks.begin())].uses;
    std::swap(uses[a].buffer, uses[b].buffer);
    CHECK_THROWS_AS(validate(other), std::logic_error);
  };
  swapped(0, 1);
  swapped(2, 5);
  CHECK_NOTHROW(validate(list));
}

TEST_CASE("schedule: validation finds an overlap") {
  Schedule list = train_list();
  for (Buffer& b : list.buffers) b.address = 0;
  CHECK_THROWS_AS(validate(list), std::logic_error);
}

TEST_CASE("schedule: buffers overlap only if both live and share bytes") {
  const auto overlap = [](size_t address, TaskId first, TaskId last) {
    std::vector<Buffer> two(2);
    two[0].bytes = two[1].bytes = 64;
    two[0].address = 128, two[0].first = 2, two[0].last = 4;
    two[1].address = address, two[1].first = first, two[1].last = last;
    return live_buffers_overlap(two);
  };
  CHECK(overlap(128, 0, 2));
  CHECK(overlap(128, 4, 9));
  CHECK(overlap(191, 3, 3));
  CHECK(overlap(65, 3, 3));
  CHECK(!overlap(192, 2, 4));
  CHECK(!overlap(64, 2, 4));
  CHECK(!overlap(128, 0, 1));
  CHECK(!overlap(128, 5, 9));
}

TEST_CASE("schedule: validation finds a buffer outside the arena") {
  Schedule list = train_list();
  list.buffers.back().address = list.arena_bytes[0];
  CHECK_THROWS_AS(validate(list), std::logic_error);
}

TEST_CASE("schedule: validation finds a read before its write") {
  Schedule list = train_list();
  std::swap(list.tasks[4], list.tasks[6]);
  std::rotate(list.tasks.begin(), list.tasks.begin() + 5, list.tasks.begin() + 6);
  CHECK_THROWS_AS(validate(list), std::logic_error);
}

TEST_CASE("schedule: a builder refuses a value that nobody writes") {
  const PlanInput input = shared_tiny_model().input(32, 32);
  ScheduleBuilder list(input, Pass::train);
  CHECK_THROWS_AS(list.add(TaskKind::attention, Phase::forward, 0, 0), std::logic_error);
}

TEST_CASE("schedule: memory grows with the group, recompute saves it") {
  CHECK(train_list(1).arena_bytes[0] < train_list(2).arena_bytes[0]);
  CHECK(train_list(2).arena_bytes[0] < train_list(4).arena_bytes[0]);
  CHECK(train_list(4, true).arena_bytes[0] < train_list(4, false).arena_bytes[0]);
}

TEST_CASE("schedule: the planner takes the largest group that fits, recompute only where needed") {
  const PlanInput input = shared_tiny_model().input(32, 32, 4);
  CHECK(single_train_within(input, {}, {uint64_t{1} << 40}).group == 4);
  CHECK(single_train_within(input, {}, {train_list(3).arena_bytes[0]}).group == 3);
  CHECK(single_train_within(input, {}, {train_list(3).arena_bytes[0] - 1}).group == 2);
  const TrainSchedule tight = single_train_within(input, {}, {train_list(1).arena_bytes[0] - 1});
  CHECK(tight.recompute);
  CHECK_FALSE(single_train_within(input, {}, {uint64_t{1} << 40}).recompute);
  CHECK(single_train_within(input, true, {uint64_t{1} << 40}).recompute);
}

TEST_CASE("schedule: addresses are reused, and reuse is a dependency") {
  const Schedule list = train_list(1);
  size_t sum = 0;
  for (const Buffer& b : list.buffers) sum += b.bytes;
  CHECK(list.arena_bytes[0] * 2 < sum);
  const auto before = dependencies(list);
  // Any two buffers at one address: the later one's first task follows, directly or not, all
  // tasks of the earlier one.
  std::vector<std::vector<bool>> follows(list.tasks.size(), std::vector<bool>(list.tasks.size()));
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    for (const TaskId d : before[t]) {
      const auto b = static_cast<size_t>(d);
      REQUIRE(b < t);
      follows[t][b] = true;
      for (size_t i = 0; i < b; ++i) follows[t][i] = follows[t][i] || follows[b][i];
    }
  }
  int reused = 0;
  for (const Buffer& a : list.buffers) {
    for (const Buffer& b : list.buffers) {
      if (a.last >= b.first || a.bytes == 0 || b.bytes == 0) continue;
      if (a.address + a.bytes <= b.address || b.address + b.bytes <= a.address) continue;
      ++reused;
      CHECK(follows[static_cast<size_t>(b.first)][static_cast<size_t>(a.last)]);
    }
  }
  CHECK(reused > 10);
}

TEST_CASE("schedule: updates follow the norm, the norm follows every gradient") {
  const Schedule list = train_list();
  const auto before = dependencies(list);
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    if (list.tasks[t].kind != TaskKind::update) continue;
    bool after_norm = false;
    for (const TaskId d : before[t]) {
      after_norm |= list.tasks[static_cast<size_t>(d)].kind == TaskKind::norm;
    }
    CHECK(after_norm);
  }
}

TEST_CASE("schedule: a trace is Chrome's format") {
  const Schedule list = train_list();
  const std::string places[] = {"host"};
  const Json trace =
      parse_json(chrome_trace(list, {{0, 0.5, 0.75}, {1, 0.75, 1.5}}, places), "trace");
  const JsonArray& events = trace.find("traceEvents")->as_array();
  REQUIRE(events.size() == 4);  // the names of the place and its stream, and two tasks
  CHECK(events[0].find("name")->as_string() == "process_name");
  CHECK(events[0].find("args")->find("name")->as_string() == "host");
  CHECK(events[1].find("name")->as_string() == "thread_name");
  CHECK(events[2].find("ph")->as_string() == "X");
  CHECK(events[2].find("ts")->as_double() == 500000);
  CHECK(events[2].find("cat")->as_string() == "embed");
  CHECK(events[2].find("args")->find("link") == nullptr);
  CHECK(events[3].find("dur")->as_double() == 750000);
}

}  // namespace
}  // namespace hearth::test
