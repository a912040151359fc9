#include "plan/step_use.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {
namespace {

/// Adds up time that tasks, sorted by begin, cover.
class Cover {
 public:
  void add(double begin, double end) {
    begin = std::max(begin, end_);
    if (end <= begin) return;
    seconds_ += end - begin;
    end_ = end;
  }
  double seconds() const { return seconds_; }
  /// Time before the end of the last task that no task covers.
  double gaps() const { return end_ - seconds_; }

 private:
  double seconds_ = 0, end_ = 0;
};

}  // namespace

const std::string& StepUse::limit() const {
  HEARTH_CHECK(!busy.empty(), "step use: a run without resources");
  return std::ranges::max_element(busy, {}, [](const auto& entry) { return entry.second; })->first;
}

StepUse use_of(const Schedule& schedule, const Trace& trace, std::span<const std::string> places,
               std::span<const BlockCopy> blocks) {
  const auto resource_of = [&](Place place) {
    return schedule.is_device(place) ? places[static_cast<size_t>(place)] : std::string(kCpu);
  };
  StepUse use;
  for (Place place = 0; place < std::ssize(places); ++place) {
    if (!schedule.is_device(place)) continue;
    use.bytes[link_name(schedule.host_of(place), place, places)];
    use.bytes[link_name(place, schedule.host_of(place), places)];
  }
  for (const Task& task : schedule.tasks) {
    if (task.kind == TaskKind::copy) use.bytes[link_name(schedule, task, places)];
  }
  std::map<std::string, Cover> covers;
  std::map<std::string, double> waited;                                 // for loads, within tasks
  std::map<std::string, std::vector<std::pair<double, double>>> links;  // copies in flight
  for (const BlockCopy& copy : blocks) {
    const std::string link = link_name(copy.from, copy.to, places);
    use.bytes[link] += copy.bytes;
    links[link].emplace_back(copy.begin, copy.end);
  }
  for (Place place = 0; place < std::ssize(places); ++place) covers[resource_of(place)];
  for (const auto& [link, bytes] : use.bytes) links[link];
  for (const TaskTime& time : trace) {
    const Task& task = schedule.tasks[static_cast<size_t>(time.task)];
    const auto stream = static_cast<size_t>(task.stream);
    const StreamUse of = schedule.streams[stream].use;
    if (of == StreamUse::exchange || of == StreamUse::collective)
      continue;  // waits for other ranks
    const bool is_copy = task.kind == TaskKind::copy;
    const bool is_sweep = task.kind == TaskKind::norm || task.kind == TaskKind::update;
    (is_copy || is_sweep ? use.sweeps_s : use.products_s) += time.cpu_s;
    if (is_copy) {
      const std::string link = link_name(schedule, task, places);
      use.bytes[link] += time.bytes;
      links[link].emplace_back(time.begin, time.end);
    } else {
      const std::string resource = resource_of(task.place);
      covers[resource].add(time.begin, time.end);
      waited[resource] += time.waited_s;
    }
  }
  for (const auto& [name, cover] : covers) {
    use.busy[name] = cover.seconds() - waited[name];
    use.stall[name] = cover.gaps() + waited[name];
  }
  for (auto& [name, copies] : links) {
    std::sort(copies.begin(), copies.end());
    Cover cover;
    for (const auto& [begin, end] : copies) cover.add(begin, end);
    use.busy[name] = cover.seconds();
  }
  return use;
}

}  // namespace hearth
