// Discrete events on model time: tasks that streams issue in order, and resources that tasks in
// flight share. Knows neither schedules nor devices (plan/simulator.h does). Pure; no clock.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth {

/// What a task takes. First `seconds`, which nothing shares; then `amount` passes through all its
/// resources at once, at the rate that they leave it.
struct TaskLoad {
  static constexpr int32_t kNone = -1;

  double seconds = 0;
  double amount = 0;  // in the unit of the resources: bytes of a link
  std::array<int32_t, 4> through = {kNone, kNone, kNone, kNone};  // resources, each once
};

/// When tasks ran, in seconds from the start. `order`: the tasks, by begin; those that begin
/// together in the order in which they became ready.
struct EventTimes {
  std::vector<double> begin, end;
  std::vector<int32_t> order;
  double last = 0;  // the end of the last task
};

/// What happens in a simulation beside its tasks, such as loads: it may hold tasks back, and passes
/// amounts of its own through the resources.
class SimulationGuest {
 public:
  virtual ~SimulationGuest() = default;
  /// How it acts; valid during its calls.
  class Stage {
   public:
    virtual ~Stage() = default;
    virtual double now() const = 0;
    /// Lets a task begin that `may_begin` has held.
    virtual void release(int32_t task) = 0;
    /// Lets something pass; `passed` has the ticket when it has. At least 0.
    virtual void pass(int32_t ticket, const TaskLoad& load) = 0;
  };
  /// Before all tasks.
  virtual void begin(Stage&) {}
  /// The task could begin now. False: it waits until it is released.
  virtual bool may_begin(int32_t task, Stage& stage) = 0;
  virtual void ended(int32_t task, Stage& stage) = 0;
  virtual void passed(int32_t ticket, Stage& stage) = 0;
};

/// A task begins when the task before it in its stream has ended, and all tasks that it follows.
/// An idle task has nothing to do: for tasks that follow it, it has ended as soon as all tasks that it
/// follows have. Its stream passes it in order, in no time.
/// Tasks in flight share resources by max-min fairness: no task could be faster unless a task that
/// is no faster became slower. So tasks through one resource share it evenly, and what a task
/// cannot use because of another resource is left to the others.
class EventSimulation {
 public:
  /// `streams`: the tasks of each stream in the order of issue; every task from 0 to n - 1 is in one
  /// stream, once. `after`: for each of the n tasks, the tasks that it follows.
  EventSimulation(std::vector<std::vector<int32_t>> streams,
                  std::vector<std::vector<int32_t>> after);

  /// `loads`: by task. `rates`: what each resource passes per second; 0: no limit.
  /// std::logic_error if tasks wait for each other; call `deadlock` before where that can be.
  /// `guest`, if given, takes part. `idle`: by task, whether it is idle; empty: none is. Their loads do
  /// not count, the guest is not asked, and their times are when their stream passed them.
  EventTimes run(std::span<const TaskLoad> loads, std::span<const double> rates,
                 SimulationGuest* guest = nullptr, std::span<const uint8_t> idle = {}) const;

  /// Tasks that wait for each other in a circle, each for the one after it and the last for the
  /// first. Empty if all tasks can run.
  std::vector<int32_t> deadlock() const;

  size_t tasks() const { return after_.size(); }

 private:
  class Run;

  std::vector<std::vector<int32_t>> streams_;
  std::vector<std::vector<int32_t>> after_;
  std::vector<int32_t> previous_;  // of each task: the one before it in its stream, or -1
  std::vector<int32_t> waits_;     // of each task: how many tasks it waits for
  /// Those that wait for task t: next_[next_begin_[t]...]. ~u: task u, because it is the next in the
  /// stream of t.
  std::vector<int32_t> next_, next_begin_;
};

}  // namespace hearth
