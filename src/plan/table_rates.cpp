#include "plan/table_rates.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace hearth {
namespace {

/// Operations of a task at a point of its entry. A point of experts is a call of one of them.
double flops_at(const Task& task, const CostEntry& entry, size_t point, const ModelSpec& spec) {
  const auto units = static_cast<double>(entry.units[point]);
  if (task.kind == TaskKind::experts) {
    const double experts =
        static_cast<double>(spec.experts_per_token) * share_of_experts(task, spec);
    return task.work.per_token / experts * units;
  }
  const double pairs = entry.pairs.empty() ? 0 : static_cast<double>(entry.pairs[point]);
  return (task.work.per_token + task.work.per_trained) * units + task.work.per_pair * pairs;
}

}  // namespace

MachineRates rates_of_table(const PlaceCosts& costs, Place place, const Schedule& schedule,
                            const ModelSpec& spec) {
  MachineRates best;
  std::set<std::tuple<const CostEntry*, double, double>> seen;  // a schedule repeats its tasks
  for (const Task& task : schedule.tasks) {
    if (task.place != place) continue;
    const CostEntry* entry = cost_entry(costs, task, spec);
    if (entry == nullptr || task.kind == TaskKind::norm) continue;
    if (!seen.emplace(entry, task.work.per_token, task.work.per_pair).second) continue;
    for (size_t i = 0; i < entry->units.size(); ++i) {
      if (entry->seconds[i] <= 0) continue;
      if (task.kind == TaskKind::update) {
        const auto units = static_cast<double>(entry->units[i]);
        best.update_params_per_s = std::max(best.update_params_per_s, units / entry->seconds[i]);
        continue;
      }
      const double rate = flops_at(task, *entry, i, spec) / entry->seconds[i];
      best.flops_per_s = std::max(best.flops_per_s, rate);
    }
  }
  return best;
}

}  // namespace hearth
