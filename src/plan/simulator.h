// Simulates a schedule: when each of its tasks runs, and how long the step takes. It runs the
// schedule that the executor runs, in the same order of issue and with the same dependencies. Pure;
// no clock.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/copy_links.h"
#include "plan/event_simulation.h"
#include "plan/idle_tasks.h"
#include "plan/load_simulation.h"
#include "plan/schedule.h"
#include "plan/trace.h"

namespace hearth {

/// What a task takes: `seconds`, then `bytes` over the links between the places of a copy, or the
/// links between ranks for `between_s`. Latencies are among the seconds.
struct TaskDemand {
  double seconds = 0;
  double bytes = 0;
  /// In which free links pass what ranks send each other (RankLinks::busy_s). Collectives in flight
  /// share them, so that two at a time take twice as long.
  double between_s = 0;
};

/// plan/step_use.h says from the trace what was busy, what waited, and what bounds the step.
struct SimulatedStep {
  double time_s = 0;
  Trace trace;                  // by begin
  std::vector<double> stall_s;  // by stream: waiting for others and for loads, up to its last task
  std::vector<BlockCopy> copies;  // of blocks, if there are loads
};

class Simulator {
 public:
  /// `links`: by place, those of hosts are not used; places past its end have links without limits. A
  /// copy passes the links of both of its places, and the root complexes above them, at the same
  /// time. Copies in flight share all of these fairly. Every compute stream has cores of its own.
  /// The schedule must outlive the simulator. `orders`: for each stream its tasks in the order of
  /// issue; empty: the order of the schedule. std::logic_error that names the tasks, if with these
  /// orders tasks wait for each other forever. `loads`, if given, must outlive the simulator.
  Simulator(const Schedule& schedule, std::span<const LinkRates> links,
            std::vector<std::vector<TaskId>> orders = {}, LoadSimulation* loads = nullptr);

  /// `demands`: by task. With loads, a step begins with what the one before left in the slots.
  /// `routed`: the routing of this step; null: devices compute the experts that the plan expects there.
  SimulatedStep run(std::span<const TaskDemand> demands, const RoutedStep* routed = nullptr) const;

 private:
  void add_turns();
  void add_links(std::span<const LinkRates> links);
  std::vector<uint8_t> idle_turns(const RoutedStep* routed) const;

  const Schedule& schedule_;
  std::vector<std::vector<TaskId>> orders_;
  LoadSimulation* const loads_;
  const IdleTasks idle_;
  /// By number in the simulation. The last turn of a task has the number of the task, those before it
  /// have numbers behind those of all tasks.
  std::vector<LoadSimulation::SimulatedTurn> turns_;
  std::vector<int32_t> first_turn_;  // by task: the number of its first turn
  std::optional<EventSimulation> events_;
  /// Of resources: links and root complexes, one for each direction; then all links between ranks,
  /// whose unit is a second.
  std::vector<double> rates_;
  std::vector<TaskLoad> passes_;  // by number in the simulation; without seconds and amounts
  std::vector<LoadSimulation::DeviceLink> device_links_;  // by place
};

}  // namespace hearth
