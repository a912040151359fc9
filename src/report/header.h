// The head of the page: which run this is.
#pragma once

#include <string>

#include "report/run_history.h"

namespace hearth {

/// Name, state and figures of the run.
std::string header_section(const RunHistory& run);
/// What was trained on what, and where the files are.
std::string facts_section(const RunHistory& run);
/// "finished", "stopped by a signal", ... as a badge.
std::string state_badge(const RunHistory& run);

}  // namespace hearth
