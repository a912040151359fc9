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

double RoutedCosts::experts_seconds(const Task& task, std::span<const int64_t> choices) const {
  const CostEntry* const entry =
      cost_entry(rates_.tables[static_cast<size_t>(task.place)], task, spec_);
  HEARTH_CHECK(entry != nullptr, "routed costs: a place without times of experts");
  double seconds = 0;
  for (const int64_t rows : choices) seconds += entry->at(static_cast<double>(rows));
  return seconds;
}

std::vector<TaskDemand> RoutedCosts::demands(const RoutedStep& step) const {
  std::vector<TaskDemand> demands = whole_;
  for (size_t t = 0; t < demands.size(); ++t) {
    const Task& task = schedule_.tasks[t];
    if (task.kind == TaskKind::experts) {
      demands[t] = {experts_seconds(task, step.of_task(static_cast<TaskId>(t)).choices)};
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
