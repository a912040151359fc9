// Which placement a run takes.
#include "base/log.h"
#include "train/run_plan.h"

namespace hearth {

void place_run(RunSetup& setup, const PlanRequest& request) {
  const std::vector<SinglePlacement>& placements = setup.devices.placements;
  set_placement(setup, placements.front());
  if (placements.size() == 1) return;
  const ProcessMemory process = measure_process(request.data_bytes);
  for (const SinglePlacement& placement : placements) {
    set_placement(setup, placement);
    const RunPlan plan = make_run_plan(subject_of(setup, process), request);
    if (plan.fits()) return;
    log_info("not on " + setup.place(placement.dense).name +
             (placement.experts == placement.dense
                  ? ""
                  : " with experts on " + setup.place(placement.experts).name) +
             ": " + what_is_missing(plan));
  }
  set_placement(setup, placements.front());
}

RunPlan make_run_plan(RunSetup& setup, const PlanRequest& request) {
  place_run(setup, request);
  return make_run_plan(subject_of(setup, measure_process(request.data_bytes)), request);
}

}  // namespace hearth
