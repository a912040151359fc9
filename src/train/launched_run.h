// `train` as processes that a launcher started: rank 0 runs it, and the others do what it says.
#pragma once

#include "setup/reporter.h"
#include "train/launched_ranks.h"
#include "train/planned_run.h"

namespace hearth {

/// All ranks call this after LaunchedRanks::compare_start, with the same options. Returns the exit code,
/// the same on all ranks. Raises an Error on those ranks alone that are to say how the run ended.
ExitCode train_launched(TrainConfig config, Reporter& reporter, LaunchedRanks& ranks);

/// Rank 0 to the others: a run begins, which they plan and read now.
void tell_begin(RankTeam& team, const PlannedRun& run);

}  // namespace hearth
