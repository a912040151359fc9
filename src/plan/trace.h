// The timeline of a schedule, in Chrome's trace event format (chrome://tracing, Perfetto).
#pragma once

#include <string>
#include <vector>

#include "plan/schedule.h"

namespace hearth {

/// When a task ran, in seconds from the start of the step.
struct TaskTime {
  TaskId task = 0;
  double begin = 0;
  double end = 0;
};
using Trace = std::vector<TaskTime>;

/// The JSON document: one complete event per task, one process per place, one thread per stream.
std::string chrome_trace(const Schedule& schedule, const Trace& trace);

}  // namespace hearth
