#include "plan/idle_tasks.h"

#include <algorithm>

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

std::vector<std::vector<TaskId>> IdleTasks::waits(const Schedule& s) const {
  std::vector<std::vector<TaskId>> waits(s.tasks.size());
  if (s.streams.size() < 2) return waits;  // their order is a legal order
  const auto all = dependencies(s);
  std::vector<TaskId> known_by(s.streams.size(), -1);  // the task for which a stream needs no more
  for (TaskId t = 0; t < std::ssize(s.tasks); ++t) {
    const auto at = static_cast<size_t>(t);
    if (decision(t) < 0) known_by[static_cast<size_t>(s.tasks[at].stream)] = t;
    for (auto i = all[at].rbegin(); i != all[at].rend(); ++i) {
      const TaskId before = *i;
      TaskId& known = known_by[static_cast<size_t>(s.tasks[static_cast<size_t>(before)].stream)];
      if (known == t) continue;
      waits[at].push_back(before);
      if (decision(before) < 0) known = t;
    }
    std::ranges::reverse(waits[at]);
  }
  return waits;
}

}  // namespace hearth
