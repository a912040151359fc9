// Evaluation as `hearth eval` runs it.
#pragma once

#include "base/json.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// Returns the output of `eval --json`. Raises Error (base/error.h) with an exit code
/// (docs/errors.md).
Json evaluate(const RunConfig& config, Reporter& reporter);

}  // namespace hearth
