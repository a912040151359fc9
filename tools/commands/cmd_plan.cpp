// hearth plan: what train would do with the same options. Exit 2 when it does not fit.
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/tune.h"
#include "train/plan_comparison.h"
#include "train/report_plan.h"

namespace hearth {

namespace {

ExitCode compare_plans(const Options& options) {
  Console console(console_settings(options));
  const TwoPlans plans =
      two_plans({options.compared_plans[0], options.compared_plans[1]}, options, console);
  if (options.json) {
    print_json(comparison_json(plans));
  } else {
    print(comparison_text(plans));
  }
  return ExitCode::done;
}

}  // namespace

ExitCode run_plan_command(const Options& given, LaunchedRanks* launched) {
  Options options = given;
  if (launched != nullptr) {
    if (const auto ending = launched->compare_start(options)) return say(*ending);
    launched->describe(options);
    if (!launched->leads()) return ExitCode::done;  // rank 0 plans for all
  }
  if (!options.compared_plans.empty()) return compare_plans(options);
  if (options.tune_s > 0) return run_tune(options);
  PlanReport report;
  {
    Console console(console_settings(options));
    report =
        report_plan(options, console, options.verbose ? PlanDetail::tasks : PlanDetail::summary);
    if (report.fits) {  // else the refusal is the one line
      for (const std::string& reason : report.reasons) console.note(reason);
    }
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
