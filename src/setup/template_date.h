// The day that chat templates take for today: fixed at the first start of a run.
#pragma once

#include "setup/config.h"

namespace hearth {

/// Where --template-date is not given, sets it, and its recorded value, to that of the saved state
/// that the run will go on from, or to today's. So a run that goes on another day reads the same
/// texts.
void fix_template_date(TrainConfig& config);

}  // namespace hearth
