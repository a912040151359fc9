// The planner `pipeline`: the order of passes, the cut into stages, and schedules over devices.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>

#include "modes/pipeline.h"
#include "modes/stage_cut.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

/// When each pass ends if it starts as soon as its stage and what it needs allow.
double makespan(const std::vector<StagePass>& passes, const std::vector<StageTime>& times) {
  std::map<std::tuple<int32_t, int32_t, bool>, double> end;
  std::vector<double> free(times.size(), 0.0);
  double last = 0;
  for (const StagePass& p : passes) {
    double begin = free[static_cast<size_t>(p.stage)];
    const auto after = [&](int32_t stage, bool backward) {
      const auto found = end.find({stage, p.micro_batch, backward});
      REQUIRE(found != end.end());
      begin = std::max(begin, found->second);
    };
    const auto stages = static_cast<int32_t>(times.size());
    if (!p.backward && p.stage > 0) after(p.stage - 1, false);
    if (p.backward) after(p.stage, false);
    if (p.backward && p.stage + 1 < stages) after(p.stage + 1, true);
    const StageTime& t = times[static_cast<size_t>(p.stage)];
    const double ended = begin + (p.backward ? t.backward : t.forward);
    free[static_cast<size_t>(p.stage)] = end[{p.stage, p.micro_batch, p.backward}] = ended;
    last = std::max(last, ended);
  }
  return last;
}

TEST_CASE("pipeline: every pass once, after what it needs, micro-batches in order") {
  for (const int32_t stages : {1, 2, 3, 4}) {
    for (const int32_t batches : {1, 2, 5, 8}) {
      for (const int32_t group : {1, 2, 8}) {
        std::vector<StageTime> times;
        for (int32_t s = 0; s < stages; ++s) times.push_back({1.0 + s % 2, 2.0 + s % 3});
        const auto passes = pipeline_order(times, batches, group);
        REQUIRE(passes.size() == static_cast<size_t>(2 * stages * batches));
        makespan(passes, times);  // requires what passes need
        std::map<std::pair<int32_t, bool>, int32_t> next;
        std::map<int32_t, int32_t> in_work;
        for (const StagePass& p : passes) {
          CHECK(p.micro_batch == next[{p.stage, p.backward}]++);
          in_work[p.stage] += p.backward ? -1 : 1;
          CHECK(in_work[p.stage] <= group);
        }
      }
    }
  }
}

TEST_CASE("pipeline: equal stages take the time that a pipeline must take") {
  // (M + S - 1) micro-batches' time, of 3 units each.
  for (const int32_t stages : {1, 2, 4}) {
    const std::vector<StageTime> times(static_cast<size_t>(stages), StageTime{1, 2});
    CHECK(makespan(pipeline_order(times, 8, 8), times) == 3.0 * (8 + stages - 1));
    CHECK(makespan(pipeline_order(times, 8, 1), times) == 3.0 * 8 * stages);
  }
}

TEST_CASE("pipeline: devices of several stages take a group through one before the next") {
  for (const int32_t devices : {1, 2, 3}) {
    for (const int32_t stages : {3, 4, 7}) {
      for (const int32_t group : {1, 3, 8}) {
        std::vector<StageTime> times;
        std::vector<Place> places;
        for (int32_t s = 0; s < stages; ++s) {
          times.push_back({1.0 + s % 2, 2.0 + s % 3});
          places.push_back(1 + s % devices);
        }
        const int32_t batches = 5;
        double span = 0;
        const auto passes = staged_order(times, places, batches, group, &span);
        REQUIRE(passes.size() == static_cast<size_t>(2 * stages * batches));
        makespan(passes, times);  // requires what passes need
        std::map<std::pair<int32_t, bool>, int32_t> next;
        std::map<Place, int> rounds;  // how often a device turns to another stage or direction
        std::map<Place, std::pair<int32_t, bool>> now;
        double work = 0;
        for (const StagePass& p : passes) {
          CHECK(p.micro_batch == next[{p.stage, p.backward}]++);
          const Place place = places[static_cast<size_t>(p.stage)];
          const std::pair round(p.stage, p.backward);
          if (!now.contains(place) || now[place] != round) ++rounds[place];
          now[place] = round;
          const StageTime& time = times[static_cast<size_t>(p.stage)];
          work += p.backward ? time.backward : time.forward;
        }
        int all = 0;
        for (const auto& [place, count] : rounds) all += count;
        const int32_t groups = (batches + group - 1) / group;
        CHECK(all == 2 * stages * groups);
        CHECK(span <= work);
        CHECK(span >= work / devices);
        if (devices == 1) CHECK(span == work);
      }
    }
  }
  // Two devices, two stages each: eight micro-batches wait for the pipeline to fill and to drain.
  const std::vector<StageTime> equal(4, StageTime{1, 1});
  double span = 0;
  staged_order(equal, std::vector<Place>{1, 2, 1, 2}, 8, 8, &span);
  CHECK(span == 2 * (2 * 8 + 1));
}

TEST_CASE("pipeline: a chain of rounds has a length of its own in each direction") {
  // One forward round, three of backward, on two devices in turn.
  const std::vector<Round> chain = {
      {0, false, 1, 2}, {0, true, 2, 3}, {1, true, 1, 3}, {2, true, 2, 3}};
  const int32_t batches = 4;
  for (const int32_t group : {1, 3, 4}) {
    double span = 0;
    const auto passes = rounds_order(chain, batches, group, &span);
    REQUIRE(passes.size() == chain.size() * static_cast<size_t>(batches));
    std::vector<int32_t> passed(static_cast<size_t>(batches));  // rounds, by micro-batch
    for (const StagePass& p : passes) {
      int32_t& of = passed[static_cast<size_t>(p.micro_batch)];
      const Round& round = chain[static_cast<size_t>(of++)];
      CHECK(p.stage == round.stage);
      CHECK(p.backward == round.backward);
    }
    CHECK(passed == std::vector<int32_t>(4, 4));
    // Groups of one: each micro-batch passes the chain alone, but the next begins beside its end.
    if (group == 1) CHECK(span == 4 * 11 - 3 * 2);
    // All at once: device 1 has forward for 8; device 2 begins at 2 and has 4 passes of 3, and again.
    if (group == 4) CHECK(span == 2 + 2 * 4 * 3);
  }
}

TEST_CASE("pipeline: a cut is the best of all, within the room") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Random random(seed, RandomSite::shuffle, 11);
    uint64_t draw = 0;
    const auto below = [&](uint64_t n) { return random.below(draw++, n); };
    StageCutInput input;
    const size_t devices = 1 + below(3), units = devices + below(5);
    for (size_t d = 0; d < devices; ++d) {
      input.devices.push_back(static_cast<Place>(d + 1));
      input.unit_bytes.push_back(below(4));
      input.room.push_back(4 + below(40));
      std::vector<double>& of = input.seconds.emplace_back();
      for (size_t u = 0; u < units; ++u) of.push_back(1.0 + static_cast<double>(below(9)));
    }
    for (size_t u = 0; u < units; ++u) input.bytes.push_back(1 + below(12));
    // Every cut, by the positions where stages end.
    const auto value = [&](const std::vector<size_t>& ends) {
      double over = 0, seconds = 0;
      size_t begin = 0;
      for (size_t d = 0; d < devices; ++d) {
        double s = 0;
        uint64_t bytes = input.unit_bytes[d] * (ends[d] - begin);
        for (size_t u = begin; u < ends[d]; ++u) {
          s += input.seconds[d][u];
          bytes += input.bytes[u];
        }
        if (bytes > input.room[d]) {
          over = std::max(over, static_cast<double>(bytes - input.room[d]) /
                                    (static_cast<double>(input.room[d]) + 1));
        }
        seconds = std::max(seconds, s);
        begin = ends[d];
      }
      return std::pair{over, seconds};
    };
    std::vector<std::vector<size_t>> cuts{{}};
    for (size_t d = 0; d < devices; ++d) {
      std::vector<std::vector<size_t>> longer;
      for (const auto& cut : cuts) {
        const size_t begin = cut.empty() ? 0 : cut.back();
        const size_t first = d + 1 == devices ? units : begin + 1;
        for (size_t end = first; end + (devices - d - 1) <= units; ++end) {
          longer.push_back(cut);
          longer.back().push_back(end);
        }
      }
      cuts = std::move(longer);
    }
    auto best = value(cuts.front());
    for (const auto& cut : cuts) best = std::min(best, value(cut));
    const auto stages = cut_stages(input);
    REQUIRE(stages);
    std::vector<size_t> ends;
    int32_t next = -1;
    for (size_t d = 0; d < devices; ++d) {
      CHECK((*stages)[d].place == input.devices[d]);
      CHECK((*stages)[d].first == next);
      next = (*stages)[d].last + 1;
      ends.push_back(static_cast<size_t>(next + 1));
    }
    CHECK(ends.back() == units);
    // A stage over its room counts before time does; the worst of both decides.
    CHECK(value(ends).first == best.first);
    if (best.first == 0) CHECK(value(ends).second == best.second);
  }
}

TEST_CASE("pipeline: more devices than layers, embedding and head cannot be cut") {
  StageCutInput input;
  input.devices = {1, 2, 3};
  input.bytes = {1, 1};
  input.seconds.assign(3, {1, 1});
  input.unit_bytes.assign(3, 0);
  input.room.assign(3, 100);
  CHECK_FALSE(cut_stages(input));
}

/// A model of four layers, a stage on each device.
Schedule staged(int devices, int64_t micro_batches, int64_t group, bool recompute,
                std::vector<Place> experts = {}) {
  register_all_op_sets();
  const TinyModel model(
      tiny_config({{"num_hidden_layers", Json(int64_t{4})}}), find_op_set("cpu"), DType::f32, 1, {},
      {virtual_devices(devices), [&](ParameterTable& table) {
         std::vector<Stage> stages;
         for (int32_t d = 0; d < devices; ++d) {
           const int32_t first = d == 0 ? -1 : d * 4 / devices;
           stages.push_back({d + 1, first, d + 1 == devices ? 4 : (d + 1) * 4 / devices - 1});
         }
         place_blocks(table, {stages, experts});
       }});
  PlanInput input = model.input(32, 32, micro_batches);
  if (!experts.empty()) input.places = places_of_rank(input.ops.size(), 1, devices);
  return pipeline_planner().train(input, group, recompute).schedule;
}

TEST_CASE("pipeline: schedules are valid, and residuals alone pass between devices") {
  for (const int devices : {1, 2, 4}) {
    for (const bool recompute : {false, true}) {
      const Schedule list = staged(devices, 4, 4, recompute);
      CHECK_NOTHROW(validate(list));
      std::set<std::string> between;
      for (const Task& task : list.tasks) {
        if (task.kind != TaskKind::copy) continue;
        const Buffer& from = list.buffers[static_cast<size_t>(task.uses[0].buffer)];
        const Buffer& to = list.buffers[static_cast<size_t>(task.uses[1].buffer)];
        if (from.place == kHostPlace || to.place == kHostPlace) continue;
        // The head computes the auxiliary loss of every layer, and its gradient.
        const std::string name(info_of(from.port.value).name);
        if (name == "dprobs" || name == "router_counts" || name == "router_prob_sums") continue;
        CHECK(std::abs(from.place - to.place) == 1);
        between.insert(name);
      }
      CHECK(between == (devices == 1 ? std::set<std::string>{}
                                     : std::set<std::string>{"residual", "d_residual"}));
    }
  }
}

TEST_CASE("pipeline: what passes between devices comes while the next one computes") {
  for (const int devices : {2, 4}) {
    for (const int64_t group : {2, 8}) {
      const Schedule list = staged(devices, 8, group, false);
      const auto before = dependencies(list);
      std::map<BufferId, TaskId> written;
      std::map<Place, TaskId> experts;  // the last
      int copies = 0;
      for (TaskId id = 0; id < std::ssize(list.tasks); ++id) {
        const Task& task = list.tasks[static_cast<size_t>(id)];
        const Value value = task.uses.front().port.value;
        if (task.kind == TaskKind::copy &&
            (value == Value::residual || value == Value::d_residual)) {
          ++copies;
          const Place to = list.buffers[static_cast<size_t>(task.uses[1].buffer)].place;
          const TaskId can = std::max(written.at(task.uses.front().buffer), experts[to]);
          for (const TaskId earlier : before[static_cast<size_t>(id)]) CHECK(earlier <= can);
        }
        if (task.kind == TaskKind::experts) experts[task.place] = id;
        for (const BufferUse& use : task.uses) {
          if (use.port.access != Access::read) written[use.buffer] = id;
        }
      }
      CHECK(copies == 2 * 8 * (devices - 1));
    }
  }
}

TEST_CASE("pipeline: a smaller group needs less memory") {
  const Schedule whole = staged(2, 8, 8, false), two = staged(2, 8, 2, false),
                 one = staged(2, 8, 1, false);
  CHECK(two.arena_bytes[1] <= whole.arena_bytes[1]);
  CHECK(one.arena_bytes[1] < two.arena_bytes[1]);
  // The last stage has one in work at a time in any case.
  CHECK(one.arena_bytes[2] <= two.arena_bytes[2]);
}

TEST_CASE("pipeline: the host has a stream for each device, and no wait between them") {
  const Schedule list = staged(2, 4, 4, false, {kHostPlace});
  std::map<Place, std::set<int32_t>> streams;  // of experts, by the device of their layer
  const auto before = dependencies(list);
  std::vector<Place> device_of_task(list.tasks.size(), kHostPlace);
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& task = list.tasks[t];
    if (task.kind != TaskKind::experts) continue;
    CHECK(task.place == kHostPlace);
    const Place device = task.layer < 2 ? 1 : 2;
    device_of_task[t] = device;
    streams[device].insert(task.stream);
  }
  REQUIRE(streams.size() == 2);
  CHECK(streams[1].size() == 1);
  CHECK(streams[2].size() == 1);
  CHECK(streams[1] != streams[2]);
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    if (device_of_task[t] == kHostPlace) continue;
    for (const TaskId b : before[t]) {
      const Place other = device_of_task[static_cast<size_t>(b)];
      CHECK((other == kHostPlace || other == device_of_task[t]));
    }
  }
}

}  // namespace
}  // namespace hearth::test
