// Fixes today's date for chat templates at the first start of a run.
#pragma once

#include "setup/config.h"

namespace hearth {

/// If --template-date is unset, sets it and its recorded value to the date in the saved state to
/// resume, or to today. So a run that resumes on another day reads the same texts.
void fix_template_date(TrainConfig& config);

}  // namespace hearth
