// What a finished run came to, as `train --json` prints it.
#pragma once

#include <string>

#include "base/json.h"
#include "setup/config.h"

namespace hearth {

/// The document of a run that has ended, from its files alone: result, verdict, steps, first and last
/// loss, evaluation loss before and after training (of the best state with --load-best), the best
/// evaluation after a step, and the seconds of all steps. Null for what was not evaluated.
Json run_summary(const TrainConfig& config);

}  // namespace hearth
