#include "train/report_plan.h"

#include "base/file_ops.h"
#include "budget/plan_file.h"
#include "budget/plan_fit.h"
#include "budget/rank_memory.h"
#include "train/planned_run.h"
#include "train/rank_options.h"
#include "train/run_disk.h"

namespace hearth {

PlanReport report_plan(const TrainConfig& options, Reporter& reporter, PlanDetail detail) {
  TrainConfig given = with_devices_of_rank(with_shared_cores(as_planned(options)), 0);
  given.planned_only = true;
  const PlannedRun run(given, open_model(given, Weights::may_be_absent), reporter);
  const TrainConfig& config = run.config;
  const Plan& plan = run.model.plan;
  if (!config.out.empty() && !run.opened->described) require_disk(run.model, config, run.steps);
  if (!config.trace.empty() && run.times.known) {
    write_file_atomically(config.trace,
                          chrome_trace(plan.train->schedule, run.times.step.trace,
                                       run.model.opened->devices.names(), run.times.step.copies));
  }
  PlanAdvice advice;
  if (!plan.fits()) advice = advice_for(run, config);
  const std::string missing =
      plan.fits() ? what_ranks_miss(plan) : refusal(plan, advice.changes, advice.needed);
  if (missing.empty()) log_lines(run.opened->said);
  const uint64_t disk = disk_needed(run.model, config, run.steps);
  PlanReport report{missing.empty(),
                    plan_text(run.model, run.times, detail, missing, disk),
                    plan_json(run.model, run.times, plan.places),
                    missing,
                    config.packing,
                    config.epochs};
  if (!missing.empty()) report.json["fits"] = false;
  if (run.data) report.reasons = run.data->choices.reasons;
  if (plan.fits()) return report;
  const size_t named = places_to_raise(plan, advice.needed).front();
  if (advice.needed[named] > plan.places[named].budget.bytes) {
    report.json["needed_bytes"] = advice.needed[named];
  }
  JsonArray changes;
  for (const PlanChange& change : advice.changes) {
    changes.push_back(JsonObject{{"options", change.options}, {"peak_bytes", change.peak}});
  }
  report.json["changes"] = std::move(changes);
  return report;
}

}  // namespace hearth
