// What tasks wait for, if some of those that they follow are idle: of random schedules, whatever is idle.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "base/random.h"
#include "plan/idle_tasks.h"

namespace hearth::test {
namespace {

/// Tasks on streams of the host that read and write a few buffers. Half of them are of parts.
class DrawnSchedule {
 public:
  explicit DrawnSchedule(uint64_t seed) : random_(seed, RandomSite::shuffle, 21) {
    schedule.decides = true;
    schedule.streams.assign(kStreams, {"host", kHostPlace});
    for (int i = 0; i < kBuffers + kDecisions; ++i) new_buffer();
    for (int i = 0; i < kDecisions; ++i) {
      Task& task = add(static_cast<int32_t>(below(kStreams)), TaskKind::decide);
      task.uses = {use(kBuffers + i, Access::write, Value::split)};
    }
    for (int i = 0; i < 60; ++i) {
      const bool of_part = below(2) == 0;
      Task& task = add(static_cast<int32_t>(below(kStreams)),
                       of_part ? TaskKind::experts : TaskKind::update);
      for (int n = 0; n < 2; ++n) {
        task.uses.push_back(use(static_cast<BufferId>(below(kBuffers)),
                                below(2) == 0 ? Access::read : Access::write, Value::mid));
      }
      if (!of_part) continue;
      task.part = {kHostPlace, 1};
      task.uses.push_back(
          use(kBuffers + static_cast<BufferId>(below(kDecisions)), Access::read, Value::split));
    }
  }
  bool draw() { return below(2) == 0; }

  Schedule schedule;

 private:
  static constexpr int kStreams = 3, kBuffers = 5, kDecisions = 3;

  uint64_t below(uint64_t n) { return random_.below(draw_++, n); }
  void new_buffer() {
    Buffer buffer;
    buffer.bytes = 64;
    buffer.address = schedule.arena_bytes[0];
    schedule.arena_bytes[0] += 64;
    schedule.buffers.push_back(buffer);
  }
  static BufferUse use(BufferId buffer, Access access, Value value) {
    Port port;
    port.value = value;
    port.access = access;
    return {buffer, port, {}};
  }
  Task& add(int32_t stream, TaskKind kind) {
    Task task;
    task.stream = stream;
    task.kind = kind;
    schedule.tasks.push_back(task);
    return schedule.tasks.back();
  }

  Random random_;
  uint64_t draw_ = 0;
};

using Tasks = std::vector<bool>;  // by task

void join(Tasks& all, const Tasks& more) {
  for (size_t t = 0; t < all.size(); ++t) all[t] = all[t] || more[t];
}

/// By task, the tasks that have surely run when others find that it has ended.
std::vector<Tasks> run_before(const Schedule& list, const Tasks& idle,
                              const std::vector<std::vector<TaskId>>& waits, bool in_order) {
  const size_t count = list.tasks.size();
  std::vector<Tasks> ended(count, Tasks(count)), passed(list.streams.size(), Tasks(count));
  for (size_t t = 0; t < count; ++t) {
    for (const TaskId before : waits[t]) join(ended[t], ended[static_cast<size_t>(before)]);
    Tasks& stream = passed[static_cast<size_t>(list.tasks[t].stream)];
    if (!idle[t]) {
      if (in_order) join(ended[t], stream);
      ended[t][t] = true;
    }
    join(stream, ended[t]);
  }
  return ended;
}

TEST_CASE("idle tasks: nothing begins before what it follows, whatever is idle") {
  int idle_tasks = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    DrawnSchedule drawn(seed);
    const Schedule& list = drawn.schedule;
    const IdleTasks rule(list);
    const auto waits = rule.waits(list);
    Tasks idle(list.tasks.size());
    for (TaskId decision = 0; decision < 3; ++decision) {
      if (!drawn.draw()) continue;
      for (const TaskId task : rule.of(decision)) idle[static_cast<size_t>(task)] = true;
    }
    idle_tasks += static_cast<int>(std::ranges::count(idle, true));
    const auto needed = run_before(list, idle, dependencies(list), false);
    const auto sure = run_before(list, idle, waits, true);
    for (size_t t = 0; t < list.tasks.size(); ++t) {
      for (size_t before = 0; before < t; ++before) {
        if (!needed[t][before] || sure[t][before]) continue;
        FAIL("seed " << seed << ": task " << t << " does not wait for " << before);
      }
    }
  }
  CHECK(idle_tasks > 1000);
}

}  // namespace
}  // namespace hearth::test
