// Training of a resolved configuration. Raises Error (base/error.h) with an exit code
// (docs/errors.md).
#pragma once

#include "base/error.h"
#include "comm/rank_team.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// Starts or resumes a run. Returns the exit code: done; stopped, after a signal (state saved);
/// numeric, with --strict if the verdict is an alarm.
/// `launched`: rank 0 of the processes of a launch (train/launched_run.h), which the call does not let
/// go; null: ranks are threads, or there is one.
ExitCode train(const TrainConfig& config, Reporter& reporter, RankTeam* launched = nullptr);

}  // namespace hearth
