#include "train/run_length.h"

#include "base/counted.h"
#include "base/error_format.h"
#include "base/numbers.h"
#include "base/setting.h"
#include "data/samples/sampler.h"
#include "setup/row_requests.h"

namespace hearth {
namespace {

int64_t steps_with_packing(const TrainConfig& config, const RowSet& rows, double epochs) {
  if (config.steps) return *config.steps;
  SamplerOptions options = sampler_options(config);
  options.packing = true;
  return Sampler(rows, options).steps_for_epochs(epochs);
}

}  // namespace

DataChoices data_choices(const TrainConfig& config, const RowSet& rows) {
  DataChoices choices{config.packing, config.epochs};
  if (config.epochs_by_data && !config.steps) {
    const bool small = rows.rows() < kRowsOfOneEpoch;
    choices.epochs = small ? 3 : 1;
    choices.reasons.push_back(fmt::format("{}: {}, as the data have {} {} rows",
                                          spelled(Setting::epochs), small ? "3" : "1",
                                          small ? "fewer than" : "at least", kRowsOfOneEpoch));
  }
  if (config.packing_by_data) {
    const int64_t steps = steps_with_packing(config, rows, choices.epochs);
    choices.packing = steps >= kStepsOfPacking;
    if (!choices.packing) {
      choices.reasons.push_back(
          fmt::format("{}: off, as the run would have {} with it, fewer than {}",
                      spelled(Setting::packing), counted(steps, "step"), kStepsOfPacking));
    }
  }
  return choices;
}

TrainConfig with_choices(TrainConfig config, const DataChoices& choices) {
  config.packing = choices.packing;
  config.epochs = choices.epochs;
  for (TrainConfig::Recorded& option : config.recorded) {
    if (option.name == "packing" && config.packing_by_data) {
      option.value = choices.packing ? "on" : "off";
    }
    if (option.name == "epochs" && config.epochs_by_data) {
      option.value = format_number(choices.epochs);
    }
  }
  config.packing_by_data = config.epochs_by_data = false;
  return config;
}

void require_learning(const TrainConfig& config, const LrCourse& course, int64_t rows,
                      RunReporter& reporter) {
  const bool by_name = config.steps.has_value();
  if (course.steps == 1 && !by_name) {
    throw usage_error(
        "the data make one step, in which next to nothing is learned: {} in an epoch, {}, and a "
        "step "
        "takes {}; lower {}, raise {}, or give {} if one step is what you want",
        counted(rows, "row"), counted(format_number(config.epochs), "epoch"),
        counted(config.micro_batch * config.grad_accum, "sequence"), spelled(Setting::grad_accum),
        spelled(Setting::epochs), spelled(Setting::steps, "1"));
  }
  if (course.steps == 1) {
    reporter.warn_of_event(spelled(Setting::steps, "1") +
                           ": in one step next to nothing is learned");
  }
  if (largest_learning_rate(config, course) == 0) {
    reporter.warn_of_event("the learning rate is 0 in every step, so nothing is learned (" +
                           spelled(config.lr == 0 ? Setting::lr : Setting::warmup) + ")");
  } else if (course.warmup >= course.steps && course.steps > 1) {
    reporter.warn_of_event(fmt::format(
        "{}: the warm-up is as long as the run of {}, so the learning rate never reaches {}",
        spelled(Setting::warmup), counted(course.steps, "step"), spelled(Setting::lr)));
  }
}

}  // namespace hearth
