#include "runtime/task_times.h"

#include <algorithm>
#include <utility>

namespace hearth {

TaskTimes::TaskTimes(const Schedule& schedule, std::vector<Device*> devices,
                     const Workspace& workspace, LinkClock& clock)
    : schedule_(schedule),
      devices_(std::move(devices)),
      workspace_(workspace),
      clock_(clock),
      times_(schedule.tasks.size()) {}

void TaskTimes::start(bool keep) {
  keep_ = keep;
  if (!keep) return;
  start_ = clock_.now();
  bases_.clear();
  bases_.resize(devices_.size());
  for (size_t s = 0; s < schedule_.streams.size(); ++s) {
    const StreamPlan& plan = schedule_.streams[s];
    Mark& base = bases_[static_cast<size_t>(plan.place)];
    if (plan.use != StreamUse::compute || device(plan.place).host_reaches()) continue;
    base.event = device(plan.place).create_event(true);
    device(plan.place).record(*base.event, *workspace_.streams[s]);
    base.event->synchronize();  // nothing runs yet
    base.at = clock_.now() - start_;
  }
}

void TaskTimes::begin(TaskId id) {
  if (!keep_) return;
  Times& times = times_[static_cast<size_t>(id)];
  times.waited_s = 0;
  times.cpu_s = -stream_of(id).busy_seconds();
  mark(id, times.begin);
}

void TaskTimes::waited(TaskId id, double seconds) {
  times_[static_cast<size_t>(id)].waited_s += seconds;
}

void TaskTimes::end(TaskId id, uint64_t bytes) {
  if (!keep_) return;
  Times& times = times_[static_cast<size_t>(id)];
  mark(id, times.end);
  times.cpu_s += stream_of(id).busy_seconds();
  times.bytes = bytes;
  times.ran = true;
}

void TaskTimes::fill(Trace& trace) {
  trace.clear();
  trace.reserve(times_.size());
  for (size_t t = 0; t < times_.size(); ++t) {
    Times& times = times_[t];
    if (!times.ran) continue;
    const Place place = schedule_.tasks[t].place;
    trace.push_back({static_cast<TaskId>(t), resolve(times.begin, place), resolve(times.end, place),
                     times.bytes, times.cpu_s, times.waited_s});
    times.ran = false;
  }
  std::sort(trace.begin(), trace.end(),
            [](const TaskTime& a, const TaskTime& b) { return a.begin < b.begin; });
}

Stream& TaskTimes::stream_of(TaskId id) const {
  const Task& task = schedule_.tasks[static_cast<size_t>(id)];
  return *workspace_.streams[static_cast<size_t>(task.stream)];
}

void TaskTimes::mark(TaskId id, Mark& mark) {
  const Task& task = schedule_.tasks[static_cast<size_t>(id)];
  if (device(task.place).host_reaches()) {
    mark.at = clock_.now() - start_;
    return;
  }
  if (mark.event) {
    mark.event->reset();
  } else {
    mark.event = device(task.place).create_event(true);
  }
  device(task.place).record(*mark.event, stream_of(id));
}

double TaskTimes::resolve(Mark& mark, Place place) {
  if (!mark.event) return mark.at;
  Mark& base = bases_[static_cast<size_t>(place)];
  return base.at + device(place).seconds_between(*base.event, *mark.event);
}

}  // namespace hearth
