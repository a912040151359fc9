// The head of the page.
#pragma once

#include <string>

#include "report/run_history.h"

namespace hearth {

/// Name, state and figures of the run.
std::string header_section(const RunHistory& run);
/// The model, the method, the data, and where the files are.
std::string facts_section(const RunHistory& run);
/// "finished", "stopped by a signal", ... as a badge.
std::string state_badge(const RunHistory& run);

}  // namespace hearth
