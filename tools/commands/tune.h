// hearth plan --tune: tries the schedules that are predicted to be fastest.
#pragma once

#include "base/error.h"
#include "options/options.h"

namespace hearth {

/// Prints each schedule with its predicted and its measured time, and the plan of the fastest one.
ExitCode run_tune(const Options& options);

}  // namespace hearth
