#include "runtime/pacer.h"

#include <algorithm>

namespace hearth {

namespace {

/// The first `count` 32-bit integers of a value that the task reads.
std::span<const int32_t> ints_of(std::span<const BoundPort> ports, Value value, int64_t count) {
  const auto bound = std::find_if(ports.begin(), ports.end(),
                                  [&](const BoundPort& b) { return b.port.value == value; });
  HEARTH_CHECK(bound != ports.end(), "pacer: a task does not read what its time depends on");
  return {reinterpret_cast<const int32_t*>(bound->data), static_cast<size_t>(count)};
}

}  // namespace

Pacer::Pacer(const Schedule& schedule, std::span<const PlaceCosts> places, const ModelSpec& spec,
             const ParameterTable& table, LinkClock& clock)
    : schedule_(schedule), experts_(spec.experts), clock_(clock), counts_(places.size()) {
  for (const Task& task : schedule.tasks) {
    const CostEntry* entry = cost_entry(places[static_cast<size_t>(task.place)], task, spec);
    const bool sweep = task.kind == TaskKind::norm || task.kind == TaskKind::update;
    entries_.push_back(entry);
    parameters_.push_back(entry != nullptr && sweep ? task_parameters(task, table) : 0);
  }
}

void Pacer::start() { counts_.assign(counts_.size(), {}); }

std::span<const int32_t> Pacer::offsets_of(const Task& task,
                                           std::span<const BoundPort> ports) const {
  const auto all = ints_of(ports, Value::route_offsets, experts_ + 1);
  if (task.experts.all()) return all;
  return all.subspan(static_cast<size_t>(task.experts.begin),
                     static_cast<size_t>(task.experts.end - task.experts.begin + 1));
}

double Pacer::seconds_of(TaskId id, const BatchShape& batch,
                         std::span<const BoundPort> ports) const {
  const auto index = static_cast<size_t>(id);
  const Task& task = schedule_.tasks[index];
  const CostEntry& entry = *entries_[index];
  switch (task.kind) {
    case TaskKind::norm:
    case TaskKind::update: return parameters_[index] > 0 ? entry.at(parameters_[index]) : 0;
    case TaskKind::experts: return experts_seconds(entry, offsets_of(task, ports));
    default: break;
  }
  double pairs = 0;
  if (!entry.pairs.empty()) {
    const int64_t count = batch.sequences + 1;
    pairs = pairs_of(ints_of(ports, Value::query_offsets, count),
                     ints_of(ports, Value::key_offsets, count), task.work.window);
  }
  return entry.at(static_cast<double>(batch.tokens), pairs);
}

void Pacer::hold(TaskId task, double begin, const BatchShape& batch,
                 std::span<const BoundPort> ports) {
  const double end = begin + seconds_of(task, batch, ports);
  const double late = clock_.now() - end;
  if (late <= 0) clock_.sleep_until(end);
  const std::lock_guard lock(mutex_);
  PacedTasks& count =
      counts_[static_cast<size_t>(schedule_.tasks[static_cast<size_t>(task)].place)];
  ++count.tasks;
  if (late <= 0) return;
  ++count.late;
  count.late_s += late;
}

}  // namespace hearth
