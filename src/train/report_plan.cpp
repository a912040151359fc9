#include "train/report_plan.h"

#include "base/file_ops.h"
#include "budget/plan_file.h"
#include "train/training_run.h"

namespace hearth {

PlanReport report_plan(const TrainConfig& options, Reporter& reporter, PlanDetail detail) {
  const TrainConfig config = as_planned(options);
  const PlannedRun run(config, prepare_planning(config), reporter);
  if (!config.out.empty()) require_disk(run.setup, config, run.steps);
  if (!config.trace.empty() && run.times.measured) {
    write_file_atomically(config.trace, chrome_trace(run.plan.train->schedule, run.times.trace));
  }
  PlanReport report{run.plan.fits(), plan_text(run.plan, run.setup, run.times, detail),
                    plan_json(run.plan, run.setup, run.times), ""};
  if (!run.plan.fits()) {
    const std::vector<PlanChange> changes = changes_that_fit(run.subject, run.request, config);
    const uint64_t needed = needed_memory(run.subject, run.request, *run.plan.short_place());
    report.refusal = refusal(run.plan, changes, needed);
    report.json["needed_bytes"] = needed;
    JsonArray list;
    for (const PlanChange& change : changes) {
      list.push_back(JsonObject{{"options", change.options}, {"peak_bytes", change.peak}});
    }
    report.json["changes"] = std::move(list);
  }
  return report;
}

}  // namespace hearth
