// What the tasks of a step take whose routing is known (plan/routed_step.h).
#pragma once

#include <span>
#include <vector>

#include "plan/cost_model.h"
#include "plan/routed_step.h"

namespace hearth {

class RoutedCosts {
 public:
  /// Of one rank. Places that compute have cost tables with times of experts. All arguments but `batches`
  /// must outlive the object.
  RoutedCosts(const Schedule& schedule, std::span<const BatchWork> batches, const ModelSpec& spec,
              const ParameterTable& table, const CostRates& rates);

  /// By task. An expert's rows of all micro-batches of a task are one call, as in a run. Tasks and
  /// copies of a part of the routed rows take their share of what the whole would take.
  std::vector<TaskDemand> demands(const RoutedStep& step) const;

 private:
  double experts_seconds(const Task& task, const RoutedStep::OfTask& of) const;
  TaskDemand of_divided(const Task& task, const RoutedStep& step) const;

  const Schedule& schedule_;
  const ModelSpec& spec_;
  const CostRates& rates_;
  std::vector<TaskDemand> whole_;  // as if each part were all of its layer
};

}  // namespace hearth
