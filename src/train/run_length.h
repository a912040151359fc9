// Length of a run: defaults that follow from the data, and runs that are too short to learn.
#pragma once

#include <string>
#include <vector>

#include "data/samples/row_set.h"
#include "record/run_reporter.h"
#include "setup/config.h"
#include "train/lr_schedule.h"

namespace hearth {

/// --epochs by default: 3 for a data set of fewer rows than this, else 1.
inline constexpr int64_t kRowsOfOneEpoch = 10'000;
/// --packing by default: on if the run has at least this many steps with it, else off.
inline constexpr int64_t kStepsOfPacking = 100;

/// Packing and epochs of a run, and why if the data decided.
struct DataChoices {
  bool packing = true;
  double epochs = 1;
  std::vector<std::string> reasons = {};
};
/// The options, or where the user left them to the data, the defaults above. --steps settles the
/// length of the run, so it leaves nothing to --epochs.
DataChoices data_choices(const TrainConfig& config, const RowSet& rows);
/// The configuration with these values, also as recorded options.
TrainConfig with_choices(TrainConfig config, const DataChoices& choices);

/// For a run from step 1. Usage error if its length follows from the data and it has one step, in
/// which nothing is learned. Warns if the user asked for one step, or for a rate of 0 in every step.
/// `rows`: in an epoch.
void require_learning(const TrainConfig& config, const LrCourse& course, int64_t rows,
                      RunReporter& reporter);

}  // namespace hearth
