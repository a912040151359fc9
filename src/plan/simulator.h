// Simulates a schedule: when each of its tasks runs, and how long the step takes. It runs the
// schedule that the executor runs, in the same order of issue and with the same dependencies. Pure;
// no clock.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/link_rate.h"
#include "plan/event_simulation.h"
#include "plan/schedule.h"
#include "plan/trace.h"

namespace hearth {

/// What a task takes: `seconds`, then `bytes` over the links between the places of a copy. The
/// latency of a copy is among the seconds.
struct TaskDemand {
  double seconds = 0;
  double bytes = 0;
};

/// plan/step_use.h says from the trace what was busy, what waited, and what bounds the step.
struct SimulatedStep {
  double time_s = 0;
  Trace trace;                  // by begin
  std::vector<double> stall_s;  // by stream: waiting for other streams, before its last task
};

/// The two places that a copy joins.
struct Route {
  Place from = kHostPlace, to = kHostPlace;
  friend auto operator<=>(const Route&, const Route&) = default;
};
Route copy_route(const Schedule& schedule, const Task& copy);
/// The latency of a copy: of all links that it passes. `links`: by place.
double copy_latency(const Schedule& schedule, const Route& route, std::span<const LinkRates> links);

class Simulator {
 public:
  /// `links`: by place, those of hosts are not used; places past its end have links without limits. A
  /// copy passes the links of both of its places, and the root complexes above them, at the same
  /// time. Copies in flight share all of these fairly. Every compute stream has cores of its own.
  /// The schedule must outlive the simulator. `orders`: for each stream its tasks in the order of
  /// issue; empty: the order of the schedule. std::logic_error that names the tasks, if with these
  /// orders tasks wait for each other forever.
  Simulator(const Schedule& schedule, std::span<const LinkRates> links,
            std::vector<std::vector<TaskId>> orders = {});

  /// `demands`: by task.
  SimulatedStep run(std::span<const TaskDemand> demands) const;

 private:
  void add_links(std::span<const LinkRates> links);

  const Schedule& schedule_;
  std::vector<std::vector<TaskId>> orders_;
  EventSimulation events_;
  std::vector<double> rates_;    // of resources: links and root complexes, one for each direction
  std::vector<TaskLoad> loads_;  // by task; without seconds and amounts
};

}  // namespace hearth
