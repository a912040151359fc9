#include "budget/table_warnings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "budget/run_rates.h"
#include "plan/kind_costs.h"
#include "plan/task_costs.h"

namespace hearth {

namespace {

/// Sizes of a kind of task: the largest of a step, and the last of the entry that times it.
struct FarSize {
  double of_step = 0;
  int64_t of_table = 0;
};

std::map<TaskKind, FarSize> far_sizes(const PlacedModel& model, Place place,
                                      const PlaceCosts& costs, std::span<const BatchWork> batches) {
  const ModelSpec& spec = model.opened->spec;
  std::map<TaskKind, FarSize> far;
  for (const Task& task : model.plan.train->schedule.tasks) {
    if (task.place != place || kind_costs(task.kind).by_parameters) continue;
    const CostEntry* const entry = cost_entry(costs, task, spec);
    if (entry == nullptr) continue;
    const double units = task_units(task, work_of(task.rows, batches), spec, model.table);
    const int64_t last = entry->units.back();
    if (units <= kFarAbove * static_cast<double>(last)) continue;
    FarSize& size = far[task.kind];
    size.of_step = std::max(size.of_step, units);
    size.of_table = size.of_table == 0 ? last : std::min(size.of_table, last);
  }
  return far;
}

/// "experts (64, the step has 1638), head (16, the step has 4096)".
std::string text_of(const std::map<TaskKind, FarSize>& far) {
  std::string text;
  for (const auto& [kind, size] : far) {
    text += text.empty() ? "" : ", ";
    text.append(name_of(kind));
    text += " (" + std::to_string(size.of_table) + ", the step has " +
            std::to_string(std::llround(size.of_step)) + ")";
  }
  return text;
}

}  // namespace

std::vector<std::string> table_warnings(const PlacedModel& model,
                                        std::span<const BatchWork> batches) {
  std::vector<std::string> lines;
  const std::vector<PlaceCosts> costs = cost_tables(model);
  for (size_t at = 0; at < costs.size(); ++at) {
    if (!costs[at].table) continue;
    const auto place = static_cast<Place>(at);
    const ComputePlace& of = model.opened->place(place);
    const std::string& name = of.budget.name;
    const RunTable* const table = of.costs ? nullptr : model.tables.find(name);
    if (table != nullptr && is_noisy(table->origin)) {
      lines.push_back(
          name +
          ": the machine was noisy when these times were measured, so they are uncertain; "
          "close other programs and run 'hearth profile'");
    }
    const std::map<TaskKind, FarSize> far = far_sizes(model, place, costs[at], batches);
    if (far.empty()) continue;
    lines.push_back(name +
                    ": the step is far above the largest sizes of its cost table, in tokens: " +
                    text_of(far) + "; above them times grow in proportion");
  }
  return lines;
}

}  // namespace hearth
