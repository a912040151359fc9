// Which placement a run takes.
#include <utility>

#include "base/log.h"
#include "budget/run_plan.h"

namespace hearth {

std::optional<RunPlan> place_run(RunSetup& setup, const PlanRequest& request) {
  const std::vector<SinglePlacement>& placements = setup.devices.placements;
  set_placement(setup, placements.front());  // adapters may have come since the run was opened
  if (placements.size() == 1) return std::nullopt;
  const ProcessMemory process = measure_process(request.data_bytes);
  std::optional<RunPlan> first;
  for (const SinglePlacement& placement : placements) {
    set_placement(setup, placement);
    RunPlan plan = make_run_plan(subject_of(setup, process), request);
    if (plan.fits()) return plan;
    log_info("not on " + setup.place(placement.dense).name +
             (placement.experts == placement.dense
                  ? ""
                  : " with experts on " + setup.place(placement.experts).name) +
             ": " + what_is_missing(plan));
    if (!first) first = std::move(plan);
  }
  set_placement(setup, placements.front());
  return first;
}

RunPlan make_run_plan(RunSetup& setup, const PlanRequest& request) {
  if (std::optional<RunPlan> plan = place_run(setup, request)) return std::move(*plan);
  return make_run_plan(subject_of(setup, measure_process(request.data_bytes)), request);
}

}  // namespace hearth
