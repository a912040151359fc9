// The timeline of a schedule, executed or predicted, in Chrome's trace event format
// (chrome://tracing, Perfetto).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/schedule.h"

namespace hearth {

/// When a task ran, in seconds from the start of the step.
struct TaskTime {
  TaskId task = 0;
  double begin = 0;
  double end = 0;
  uint64_t bytes = 0;   // of a copy: its payload
  double cpu_s = 0;     // seconds of workers on the host's cores, summed; 0 if predicted
  double waited_s = 0;  // between begin and end, for experts that were being loaded
};
using Trace = std::vector<TaskTime>;

/// A copy of a block between its home and a device, which is no task; times as in TaskTime.
struct BlockCopy {
  BlockId block = 0;
  bool gradient = false;  // its accumulators, not its weights
  Place from = kHostPlace, to = kHostPlace;
  double begin = 0, end = 0;
  uint64_t bytes = 0;  // that crossed the link
};

/// "FROM->TO" by names of places. `places`: the host, then the devices.
std::string link_name(Place from, Place to, std::span<const std::string> places);
/// The link that a copy uses.
std::string link_name(const Schedule& schedule, const Task& copy,
                      std::span<const std::string> places);

/// The JSON document: one complete event per task, one process per place, one thread per stream.
/// The category is the kind of the task. A copy names its link, its bytes, and the block or the
/// value that it carries.
/// Copies of blocks are events of the category `copy`, too, in the threads of the copy streams of the
/// device.
std::string chrome_trace(const Schedule& schedule, const Trace& trace,
                         std::span<const std::string> places,
                         std::span<const BlockCopy> blocks = {});

}  // namespace hearth
