// Timelines in few bars, and seconds by kind.
#include "plan/timeline.h"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

namespace hearth::test {
namespace {

/// Two streams: stream 0 passes `layers` layers forward and backward, with attention and experts in
/// each; stream 1 copies once.
struct TwoStreams {
  Schedule schedule;
  Trace trace;

  explicit TwoStreams(int32_t layers) {
    schedule.streams = {StreamPlan{}, StreamPlan{"copy", kHostPlace, StreamUse::copy_in}};
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      for (int32_t layer = 0; layer < layers; ++layer) {
        add(0, TaskKind::attention, phase, layer);
        add(0, TaskKind::experts, phase, layer);
      }
    }
    add(1, TaskKind::copy, Phase::forward, 0);
  }
  void add(int32_t stream, TaskKind kind, Phase phase, int32_t layer) {
    Task task;
    task.stream = stream;
    task.kind = kind;
    task.phase = phase;
    task.layer = layer;
    const auto id = static_cast<TaskId>(schedule.tasks.size());
    const double begin = id, end = id + 0.5;
    schedule.tasks.push_back(task);
    trace.push_back({id, begin, end});
  }
};

TEST_CASE("timeline: as many bars as asked for, which cover their tasks") {
  const TwoStreams small(2);
  const std::vector<TimelineBar> all = bars_of(small.schedule, small.trace, 100);
  REQUIRE(all.size() == 9);
  CHECK(all[1].kind == TaskKind::experts);
  CHECK(all[1].begin == 1);
  CHECK(all[1].end == 1.5);
  CHECK(all.back().stream == 1);
  for (const int32_t layers : {2, 5, 40, 1000}) {
    const TwoStreams t(layers);
    const std::vector<TimelineBar> bars = bars_of(t.schedule, t.trace, 30);
    INFO(layers << " layers, " << bars.size() << " bars");
    CHECK(bars.size() <= 30);
    CHECK(std::ranges::is_sorted(
        bars, {}, [](const TimelineBar& bar) { return std::pair(bar.stream, bar.begin); }));
    CHECK(bars.front().begin == 0);
    CHECK(bars.back().end == t.trace.back().end);
    for (const TaskTime& time : t.trace) {
      const Task& task = t.schedule.tasks[static_cast<size_t>(time.task)];
      CHECK(std::ranges::any_of(bars, [&](const TimelineBar& bar) {
        return bar.stream == task.stream && bar.begin <= time.begin && bar.end >= time.end;
      }));
    }
  }
}

TEST_CASE("timeline: tasks in a row are joined by layer, then by phase") {
  const TwoStreams t(10);  // 41 tasks
  const std::vector<TimelineBar> by_layer = bars_of(t.schedule, t.trace, 25);
  REQUIRE(by_layer.size() == 21);
  CHECK(by_layer[3].several_kinds);
  CHECK_FALSE(by_layer[3].several_phases);
  CHECK(by_layer[3].layer == 3);
  const std::vector<TimelineBar> by_phase = bars_of(t.schedule, t.trace, 16);
  REQUIRE(by_phase.size() == 3);
  CHECK(by_phase[1].phase == Phase::backward);
  CHECK(by_phase[1].layer == -1);
}

TEST_CASE("timeline: phases in turn are joined by number") {
  TwoStreams t(0);
  for (int32_t m = 0; m < 1000; ++m) {
    t.add(0, TaskKind::attention, Phase::forward, m);
    t.add(0, TaskKind::attention, Phase::backward, m);
  }
  const std::vector<TimelineBar> bars = bars_of(t.schedule, t.trace, 100);
  CHECK(bars.size() <= 100);
  CHECK(bars.size() > 30);
  CHECK(bars.front().several_phases);
}

TEST_CASE("timeline: plan.json has both timelines, and seconds by kind") {
  const TwoStreams t(3);
  Trace executed = t.trace;
  for (TaskTime& time : executed) time.end += 0.25;
  const StepTimelines step{t.schedule, t.trace, executed, 7};
  const Json json = timeline_json(step, {"host"});
  CHECK(json.find("step")->as_int() == 7);
  CHECK(json.find("streams")->as_array().size() == 2);
  const JsonArray& bar = json.find("executed")->as_array()[1].as_array();
  CHECK(Json(bar).dump() == R"([0, "experts forward layer 0", 1000000, 1750000])");
  CHECK(json.find("predicted")->as_array().size() == t.trace.size());
  const Json times = task_times_json(step);
  REQUIRE(times.as_array().size() == 5);
  const Json& attention = times.as_array()[0];
  CHECK(attention.find("name")->as_string() == "attention forward");
  CHECK(attention.find("tasks")->as_int() == 3);
  CHECK(attention.find("predicted_s")->as_double() == Catch::Approx(1.5));
  CHECK(attention.find("executed_s")->as_double() == Catch::Approx(2.25));
  const std::vector<BlockCopy> copies{{3, false, kHostPlace, 1, 0.5, 0.75, 64},
                                      {4, true, kHostPlace, kHostPlace, 1, 1.5, 64}};
  TwoStreams with_device(1);
  with_device.schedule.places.resize(2);
  with_device.schedule.places[1].device = true;
  const Json loaded =
      task_times_json({with_device.schedule, with_device.trace, Trace{}, 7, copies});
  const JsonArray& all = loaded.as_array();
  const Json &load = all[all.size() - 2], &store = all.back();
  CHECK(load.dump() == R"({"name": "load", "tasks": 1, "predicted_s": 0.25, "executed_s": null})");
  CHECK(store.dump() == R"({"name": "store", "tasks": 1, "predicted_s": 0.5, "executed_s": null})");
  const Json unknown = task_times_json({t.schedule, Trace{}, executed, 7});
  CHECK(unknown.as_array()[0].find("predicted_s")->is_null());
}

}  // namespace
}  // namespace hearth::test
