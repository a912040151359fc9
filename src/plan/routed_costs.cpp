#include "plan/routed_costs.h"

#include "base/error.h"

namespace hearth {

/// Whether the task works on the routed rows of one place's experts.
static bool is_of_part(const Task& task) {
  return !task.part.all() && !task.part.guests && task.layer >= 0 && !task.rows.none();
}

RoutedCosts::RoutedCosts(const Schedule& schedule, std::span<const BatchWork> batches,
                         const ModelSpec& spec, const ParameterTable& table, const CostRates& rates)
    : schedule_(schedule), spec_(spec), rates_(rates) {
  Schedule whole = schedule;
  for (Task& task : whole.tasks) {
    if (is_of_part(task)) task.part.experts = static_cast<int32_t>(spec.experts);
  }
  whole_ = task_demands(whole, batches, spec, table, rates);
}

double RoutedCosts::experts_seconds(const Task& task, const RoutedStep::OfTask& of) const {
  const CostEntry* const entry =
      cost_entry(rates_.tables[static_cast<size_t>(task.place)], task, spec_);
  HEARTH_CHECK(entry != nullptr, "routed costs: a place without times of experts");
  double seconds = 0;
  for (const int64_t rows : of.choices) seconds += entry->at(static_cast<double>(rows));
  if (of.last_share < 1) {
    seconds -= (1 - of.last_share) * entry->at(static_cast<double>(of.choices.back()));
  }
  return seconds;
}

TaskDemand RoutedCosts::of_divided(const Task& task, const RoutedStep& step) const {
  const auto at = static_cast<size_t>(task.place);
  const BufferUse& moved = task.kind == TaskKind::copy ? task.uses.front() : task.uses.back();
  // What is copied and read says for which micro-batch; all of a group have one split.
  Task of = task;
  if (of.rows.none())
    of.rows = rows_of(schedule_.buffers[static_cast<size_t>(task.uses.back().buffer)].micro_batch);
  const RoutedStep::Divided divided = step.divided(of);
  if (divided.share == 0) return {};
  const double bytes = divided.share * static_cast<double>(moved.port.bytes(0));
  switch (task.kind) {
    case TaskKind::copy:
      return {copy_latency(schedule_, copy_route(schedule_, task), rates_.links), bytes};
    case TaskKind::divided: {
      const CostEntry* const entry = divided_entry(rates_.tables[at], task, spec_);
      HEARTH_CHECK(entry != nullptr, "routed costs: a place without times of experts");
      if (divided.choices == 0) return {};
      return {divided.share * entry->at(static_cast<double>(divided.choices))};
    }
    case TaskKind::pack: return {swept_seconds(rates_.tables[at], 2 * bytes, spec_)};
    case TaskKind::join: return {swept_seconds(rates_.tables[at], 3 * bytes, spec_)};
    default: return {};
  }
}

/// Whether the task is there for an expert that is divided along its width.
static bool is_for_divided(const Task& task) {
  return task.kind == TaskKind::pack || task.kind == TaskKind::divided ||
         task.kind == TaskKind::join ||
         (task.kind == TaskKind::copy && info_of(task.uses.front().port.value).of_columns);
}

std::vector<TaskDemand> RoutedCosts::demands(const RoutedStep& step) const {
  std::vector<TaskDemand> demands = whole_;
  for (size_t t = 0; t < demands.size(); ++t) {
    const Task& task = schedule_.tasks[t];
    if (task.kind == TaskKind::experts) {
      demands[t] = {experts_seconds(task, step.of_task(static_cast<TaskId>(t)))};
      continue;
    }
    if (is_for_divided(task)) {
      demands[t] = of_divided(task, step);
      continue;
    }
    if (!is_of_part(task)) continue;
    const double share = step.share(task);
    demands[t].bytes *= share;
    // The latency of a copy that carries something is whole.
    if (task.kind != TaskKind::copy || share == 0) demands[t].seconds *= share;
  }
  return demands;
}

}  // namespace hearth
