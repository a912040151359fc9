// Which tasks of a schedule may have nothing to do, because a split gives their place no token. Such a
// task touches no memory. Who follows it may begin once all that it follows has ended, wherever its
// stream is. So devices do not wait for a host that has none of their experts and is busy with updates.
// The executor and the simulator share this rule.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "plan/schedule.h"

namespace hearth {

class IdleTasks {
 public:
  /// With the part of a host, and what copies bring to that part alone.
  explicit IdleTasks(const Schedule& schedule);

  /// The task of the split that says whether the task is idle; -1: it never is.
  TaskId decision(TaskId task) const { return decision_[static_cast<size_t>(task)]; }
  /// All such tasks of a decision; they are idle together. Ascending.
  std::span<const TaskId> of(TaskId decision) const;
  /// The host whose part they are.
  Place place(TaskId decision) const { return parts_.at(decision).place; }
  /// Whether the plan expects them to be idle.
  bool expected(TaskId decision) const { return parts_.at(decision).experts == 0; }
  /// By task, the tasks that it waits for, beside what its stream does before it; ascending. When a stream
  /// has passed a task, it has passed all before it, so of each stream only the latest counts. But a task
  /// that is idle has ended before its stream passes it: those before it count, too. And since who follows
  /// it then waits for what it follows, it also names tasks of its own stream. Empty lists, if there is
  /// one stream.
  std::vector<std::vector<TaskId>> waits(const Schedule& schedule) const;

 private:
  struct Part {
    std::vector<TaskId> tasks;
    Place place = kHostPlace;
    int32_t experts = 0;  // that the plan expects there
  };
  std::vector<TaskId> decision_;  // by task
  std::map<TaskId, Part> parts_;  // by decision
};

/// The tasks that wrote the splits, by the buffers of these.
std::map<BufferId, TaskId> decisions_by_split(const Schedule& schedule);

}  // namespace hearth
