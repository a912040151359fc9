// The verdict on the run, from the journal.
#pragma once

#include <string>

#include "report/run_history.h"

namespace hearth {

/// Empty if the run has not ended.
std::string verdict_section(const RunHistory& run);

}  // namespace hearth
