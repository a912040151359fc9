#include "budget/routed_steps.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "budget/decided_splits.h"
#include "budget/device_loads.h"
#include "plan/routed_costs.h"

namespace hearth {

std::vector<SimulatedStep> simulate_steps(const PlacedModel& model, const StepWork& work,
                                          int64_t steps, const RoutedChoices& choices) {
  const Schedule& schedule = model.plan.train->schedule;
  const CostRates& costs = model.rates->costs;
  const ModelSpec& spec = model.opened->spec;
  const RoutedCosts routed(schedule, work.batches, spec, model.table, costs);
  const std::vector<DeviceLoads> loads = device_loads(model, costs.links);
  std::optional<LoadSimulation> travel;
  if (!loads.empty()) travel.emplace(model.table, model.plan.policy, schedule, loads);
  const Simulator simulator(schedule, costs.links, {}, travel ? &*travel : nullptr);
  const std::unique_ptr<SplitDecider> rule = split_decider(model, schedule, costs.links);
  std::vector<SimulatedStep> simulated;
  for (int64_t step = 0; step < steps; ++step) {
    if (rule) rule->begin_step(step + 1);
    const RoutedStep routing(
        schedule, model.table, spec.experts, rule.get(),
        [&](int32_t layer, int32_t micro_batch) { return choices(step, layer, micro_batch); });
    if (rule) rule->end_step();
    simulated.push_back(simulator.run(routed.demands(routing), &routing));
  }
  return simulated;
}

bool knows_routed_times(const PlacedModel& model) {
  if (!model.rates || !model.plan.train || model.zebra || model.plan.shards.count() > 1)
    return false;
  const std::vector<PlaceCosts>& tables = model.rates->costs.tables;
  return std::ranges::all_of(model.plan.train->schedule.tasks, [&](const Task& task) {
    if (task.kind != TaskKind::experts) return true;
    const auto at = static_cast<size_t>(task.place);
    return at < tables.size() && cost_entry(tables[at], task, model.opened->spec) != nullptr;
  });
}

}  // namespace hearth
