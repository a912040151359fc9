#include "plan/idle_tasks.h"

namespace hearth {

std::map<BufferId, TaskId> decisions_by_split(const Schedule& schedule) {
  std::map<BufferId, TaskId> decisions;
  for (TaskId t = 0; t < std::ssize(schedule.tasks); ++t) {
    const Task& task = schedule.tasks[static_cast<size_t>(t)];
    if (task.kind != TaskKind::decide) continue;
    for (const BufferUse& use : task.uses) {
      if (use.port.value == Value::split) decisions[use.buffer] = t;
    }
  }
  return decisions;
}

IdleTasks::IdleTasks(const Schedule& schedule) : decision_(schedule.tasks.size(), -1) {
  if (!schedule.decides) return;
  const std::map<BufferId, TaskId> decisions = decisions_by_split(schedule);
  for (TaskId t = 0; t < std::ssize(schedule.tasks); ++t) {
    const Task& task = schedule.tasks[static_cast<size_t>(t)];
    if (!schedule.may_be_idle(task)) continue;
    const auto split = std::ranges::find_if(
        task.uses, [](const BufferUse& use) { return use.port.value == Value::split; });
    HEARTH_CHECK(split != task.uses.end(), "idle tasks: a part without a split");
    const TaskId decision = decisions.at(split->buffer);
    decision_[static_cast<size_t>(t)] = decision;
    Part& part = parts_[decision];
    part.tasks.push_back(t);
    if (task.kind != TaskKind::experts) continue;
    part.place = task.place;
    part.experts = task.part.experts;
  }
}

std::span<const TaskId> IdleTasks::of(TaskId decision) const {
  const auto found = parts_.find(decision);
  if (found == parts_.end()) return {};
  return found->second.tasks;
}

}  // namespace hearth
