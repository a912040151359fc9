#include "runtime/pacer.h"

#include <algorithm>

#include "layers/split.h"

namespace hearth {

namespace {

const BoundPort& port_of(std::span<const BoundPort> ports, Value value) {
  const auto bound = std::find_if(ports.begin(), ports.end(),
                                  [&](const BoundPort& b) { return b.port.value == value; });
  HEARTH_CHECK(bound != ports.end(), "pacer: a task does not read what its time depends on");
  return *bound;
}

/// The first `count` 32-bit integers of a value that the task reads.
std::span<const int32_t> ints_of(std::span<const BoundPort> ports, Value value, int64_t count) {
  return {reinterpret_cast<const int32_t*>(port_of(ports, value).data), static_cast<size_t>(count)};
}

}  // namespace

Pacer::Pacer(const Schedule& schedule, std::span<const PlaceCosts> places, const ModelSpec& spec,
             const ParameterTable& table, LinkClock& clock)
    : schedule_(schedule),
      experts_(spec.experts),
      width_(spec.expert_width),
      clock_(clock),
      counts_(places.size()) {
  for (const Task& task : schedule.tasks) {
    const PlaceCosts& at = places[static_cast<size_t>(task.place)];
    const CostEntry* entry =
        task.kind == TaskKind::divided ? divided_entry(at, task, spec) : cost_entry(at, task, spec);
    const bool sweep = task.kind == TaskKind::norm || task.kind == TaskKind::update;
    entries_.push_back(entry);
    shares_.push_back(share_of_rows(task, spec));
    parameters_.push_back(entry != nullptr && sweep ? task_parameters(task, table) : 0);
    const bool experts = task.kind == TaskKind::experts;
    first_expert_.push_back(experts ? table.find_block(BlockKind::expert, task.layer, 0) : 0);
  }
}

void Pacer::start() { counts_.assign(counts_.size(), {}); }

double Pacer::seconds_of_experts(TaskId id, std::span<const BoundPort> ports,
                                 const ExpertWave& wave) const {
  const auto index = static_cast<size_t>(id);
  const Task& task = schedule_.tasks[index];
  const BoundPort& offsets =
      port_of(ports, task.part.guests ? Value::guest_offsets : Value::route_offsets);
  const BlockUse& blocks = task.blocks.front();  // all experts, or this rank's
  const int32_t count = blocks.end - blocks.begin, first = blocks.begin - first_expert_[index];
  std::pair<int32_t, int32_t> positions{first, first + count};
  if (task.part.guests) {
    positions = {task.part.place * (count + 1), task.part.place * (count + 1) + count};
  } else if (!task.part.all()) {
    const BoundPort& split = port_of(ports, Value::split);
    const ConstView value(split.data, DType::i32, split.port.rows(0), 1);
    positions = SplitView(value, experts_).positions(task.part.place);
  }
  auto [begin, end] = positions;
  if (!wave.all()) {
    end = begin + wave.end;
    begin += wave.begin;
  }
  const std::span own(reinterpret_cast<const int32_t*>(offsets.data) + begin,
                      static_cast<size_t>(end - begin) + 1);
  const auto stride = static_cast<int64_t>(offsets.stride / sizeof(int32_t));
  const int64_t segments = task.rows.count();
  double seconds = experts_seconds(*entries_[index], own, segments, stride);
  if (const double share = share_of_device(ports); share > 0 && own.size() > 1) {
    seconds -= share * experts_seconds(*entries_[index], own.last(2), segments, stride);
  }
  return seconds;
}

double Pacer::share_of_device(std::span<const BoundPort> ports) const {
  const auto bound = std::ranges::find_if(
      ports, [](const BoundPort& b) { return b.port.value == Value::divided; });
  if (bound == ports.end()) return 0;
  const DividedView divided(ConstView(bound->data, DType::i32, DividedView::kSize, 1));
  return static_cast<double>(divided.width) / static_cast<double>(width_);
}

double Pacer::seconds_of_divided(TaskId id, std::span<const BoundPort> ports) const {
  const BoundPort& bound = port_of(ports, Value::divided);
  const DividedView divided(ConstView(bound.data, DType::i32, DividedView::kSize, 1));
  if (!divided.any() || divided.rows == 0) return 0;
  return share_of_device(ports) *
         entries_[static_cast<size_t>(id)]->at(static_cast<double>(divided.rows));
}

double Pacer::seconds_of(TaskId id, std::span<const BatchShape> batches,
                         std::span<const BoundPort> ports, const ExpertWave& wave) const {
  const auto index = static_cast<size_t>(id);
  const Task& task = schedule_.tasks[index];
  const CostEntry& entry = *entries_[index];
  switch (task.kind) {
    case TaskKind::norm:
    case TaskKind::update: return parameters_[index] > 0 ? entry.at(parameters_[index]) : 0;
    case TaskKind::experts: return seconds_of_experts(id, ports, wave);
    case TaskKind::divided: return seconds_of_divided(id, ports);
    default: break;
  }
  const BatchShape& batch = batches.front();
  double pairs = 0;
  if (!entry.pairs.empty()) {
    const int64_t count = batch.sequences + 1;
    pairs = pairs_of(ints_of(ports, Value::query_offsets, count),
                     ints_of(ports, Value::key_offsets, count), task.work.window);
  }
  return shares_[index] * entry.at(static_cast<double>(batch.tokens), pairs);
}

void Pacer::hold(TaskId task, double begin, std::span<const BatchShape> batches,
                 std::span<const BoundPort> ports, const ExpertWave& wave) {
  const double end = begin + seconds_of(task, batches, ports, wave);
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
