// The predicted and the executed timeline of a step, one above the other, and the seconds of the
// tasks of each kind.
#pragma once

#include <string>

#include "report/run_history.h"

namespace hearth {

/// From "timeline" and "task_times" of plan.json, which are there once a run has ended. Empty if
/// there are none. Entries of a wrong form are left out.
std::string timeline_section(const RunHistory& run);

}  // namespace hearth
