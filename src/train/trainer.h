// Training of a resolved configuration. Raises Error (base/error.h) with an exit code
// (docs/errors.md).
#pragma once

#include "base/error.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// Starts or resumes a run. Returns the exit code: done; stopped, after a signal (state saved);
/// numeric, with --strict if the verdict is an alarm.
ExitCode train(const TrainConfig& config, Reporter& reporter);

}  // namespace hearth
