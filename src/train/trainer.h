// Training: reads a resolved configuration; raises Error (base/error.h) with an exit code
// (docs/errors.md).
#pragma once

#include "base/error.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// Fine-tunes, or resumes. Returns the exit code: done, stopped (state saved) after a signal, or with
/// --strict numeric where the verdict on the run is an alarm.
ExitCode train(const TrainConfig& config, Reporter& reporter);

}  // namespace hearth
