// Holds the tasks of places with cost tables until the time that the table gives them.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "device/link.h"
#include "plan/task_costs.h"

namespace hearth {

/// The tasks of a place that its table timed.
struct PacedTasks {
  int64_t tasks = 0;
  int64_t late = 0;   // tasks whose work took longer than the table's time
  double late_s = 0;  // by how much, in all

  void operator+=(const PacedTasks& other) {
    tasks += other.tasks;
    late += other.late;
    late_s += other.late_s;
  }
};

/// A task ends no earlier than its begin plus the table's time. A task whose work took longer keeps
/// its time and counts as late. Copies are not held: their device paces them by its links.
/// The host must reach the memory of places with tables. Thread-safe, except for `start`.
class Pacer {
 public:
  /// `places`: by place. The schedule, the tables and the clock must outlive the pacer.
  Pacer(const Schedule& schedule, std::span<const PlaceCosts> places, const ModelSpec& spec,
        const ParameterTable& table, LinkClock& clock);

  /// Starts to count from zero.
  void start();
  bool paces(TaskId task) const { return entries_[static_cast<size_t>(task)] != nullptr; }
  /// Call when the work of a task that is paced has ended, before other tasks may change what it
  /// read. `begin`: the clock before the work. Blocks the calling thread.
  /// `batches`: of the task's micro-batches. `wave`: the experts of an experts task that were computed;
  /// each wave is held, and counts as a task.
  void hold(TaskId task, double begin, std::span<const BatchShape> batches,
            std::span<const BoundPort> ports, const ExpertWave& wave = {});
  /// By place.
  const std::vector<PacedTasks>& counts() const { return counts_; }

 private:
  double seconds_of_experts(TaskId task, std::span<const BoundPort> ports,
                            const ExpertWave& wave) const;
  /// Of a divided expert: of its width, that of the device; 0: none is divided.
  double share_of_device(std::span<const BoundPort> ports) const;
  double seconds_of_divided(TaskId task, std::span<const BoundPort> ports) const;
  double seconds_of(TaskId task, std::span<const BatchShape> batches,
                    std::span<const BoundPort> ports, const ExpertWave& wave) const;

  const Schedule& schedule_;
  const int64_t experts_, width_;  // of a layer, of an expert
  LinkClock& clock_;
  std::vector<const CostEntry*> entries_;  // by task; null: not paced
  std::vector<double> shares_;             // by task: of the rows that it moves
  std::vector<double> parameters_;         // by task; of norm and update
  std::vector<BlockId> first_expert_;      // by task; of experts: the layer's first
  std::mutex mutex_;                       // of the counts
  std::vector<PacedTasks> counts_;
};

}  // namespace hearth
