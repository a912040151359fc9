// The loads of weights in a simulated step: each device's loader, driven by model time. The same turns
// (plan/loader/travel_turns.h) and the same loader drive the loads of a run (runtime/residency.h).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "plan/event_simulation.h"
#include "plan/loader/loader.h"
#include "plan/loader/travel_turns.h"
#include "plan/routed_step.h"
#include "plan/schedule.h"
#include "plan/trace.h"

namespace hearth {

/// Of a device: its slots, and how they are filled.
struct DeviceLoads {
  Place place = kHostPlace;
  std::vector<BlockId> blocks;  // that travel there, without adapters
  std::vector<SlotClass> classes;
  LoaderSettings settings;
  LoadRule rule;
};

/// Holds tasks back until their blocks are there. A direction of a link passes one piece of loads at a
/// time, beside the copies of tasks. What is in slots at the end of a step is there in the next.
class LoadSimulation final : public SimulationGuest {
 public:
  /// A task of the simulation: a turn of a task of the schedule.
  struct SimulatedTurn {
    TaskId task = 0;
    int32_t turn = 0;
    bool is_last = true;
  };
  /// Of a device: what a piece to it, and from it, passes through; with the link's latency.
  using DeviceLink = std::array<TaskLoad, 2>;

  /// The table and the schedule must outlive the object.
  LoadSimulation(const ParameterTable& table, const CopyPolicy& policy, const Schedule& schedule,
                 std::span<const DeviceLoads> devices);
  ~LoadSimulation() override;

  /// How many turns a task takes, and the share of its time that one takes.
  int32_t turns(TaskId task) const;
  double share(TaskId task, int32_t turn) const;

  /// A step begins. `tasks`: by number in the simulation; `links`: by place. `loads`: what each of the
  /// tasks takes; of turns whose experts are decided in the step, it is known when they begin. `routed`:
  /// of the step; null: devices compute the experts that the plan expects there. All arguments must
  /// outlive the step.
  void begin_step(std::span<const SimulatedTurn> tasks, std::span<const DeviceLink> links,
                  std::span<TaskLoad> loads, const RoutedStep* routed);
  /// The copies of the step so far, by their ends.
  const std::vector<BlockCopy>& copies() const { return copies_; }

  void begin(Stage& stage) override;
  bool may_begin(int32_t task, Stage& stage) override;
  void ended(int32_t task, Stage& stage) override;
  void passed(int32_t ticket, Stage& stage) override;

 private:
  struct OfDevice;

  void want(OfDevice& device, const Wants& wants, Stage& stage);
  OfDevice* device_of(TaskId task) const;
  bool is_ready(int32_t task, Stage& stage);
  bool turn_is_ready(OfDevice& device, const SimulatedTurn& turn, Stage& stage);
  bool homes_are_ready(const Task& task, int32_t number, Stage& stage);
  bool accumulators_are_home(const SimulatedTurn& turn, int32_t number, Stage& stage);
  template <class F>
  void for_accumulators(TaskId task, const F& f);
  bool adds_at_host(const Task& task) const;
  void choose(const RoutedStep::Foretold& experts, size_t there = 0);
  void time_turn(const OfDevice& device, const SimulatedTurn& turn, int32_t number);
  void ask(const RoutedStep::Foretold& experts, Priority priority, Stage& stage);
  void decided(const RoutedStep::Decision& decision, Stage& stage);
  void carry_out(OfDevice& device, Stage& stage);
  void start_piece(OfDevice& device, size_t direction, Stage& stage);
  void release_held(Stage& stage);

  const Schedule& schedule_;
  std::vector<std::unique_ptr<OfDevice>> devices_;
  const RoutedStep* routed_ = nullptr;  // of the step that runs
  bool asks_for_splits_ = true;         // LoadPhases::inter_expert
  std::span<const SimulatedTurn> tasks_;
  std::span<const DeviceLink> links_;
  std::span<TaskLoad> loads_;       // by number in the simulation
  std::vector<double> whole_;       // seconds of all turns of the task, by number
  std::vector<int32_t> held_;       // tasks of the simulation
  std::vector<uint8_t> has_begun_;  // by task of the simulation: what must happen once before it
  std::vector<BlockCopy> copies_;
};

}  // namespace hearth
