// hearth plan: what train would do with the same options. Exit 2 when it does not fit.
#include "commands/commands.h"
#include "commands/output.h"
#include "train/report_plan.h"

namespace hearth {

ExitCode run_plan_command(const Options& options) {
  PlanReport report;
  {
    Console console(console_settings(options));
    report = report_plan(options, console, options.verbose ? PlanDetail::tasks : PlanDetail::kinds);
  }
  if (options.json) {
    print_json(report.json);
  } else {
    print(report.text);
  }
  if (!report.fits) throw usage_error(report.refusal);
  return ExitCode::done;
}

}  // namespace hearth
