// A timeline in few bars, for a page: what each stream did, by kind, phase and layer. And the seconds
// of the tasks of each kind, predicted beside executed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/trace.h"

namespace hearth {

/// One task, or several in a row on one stream. What they do not have in common is left open.
struct TimelineBar {
  int32_t stream = 0;
  TaskKind kind = TaskKind::embed;
  Phase phase = Phase::forward;
  bool several_kinds = false, several_phases = false;
  int32_t layer = -1;  // -1: none, or several
  double begin = 0, end = 0;
};

/// At most `most` bars per stream and 16 in all, whichever is more. Tasks in a row on a stream
/// become one bar where they agree in kind, phase and layer; if that leaves too many, in phase and
/// layer; else in phase; else neighbours are joined whatever they are. A bar reaches from the begin
/// of its first task to the end of its last. Sorted by stream, then by begin.
std::vector<TimelineBar> bars_of(const Schedule& schedule, const Trace& trace, size_t most);

/// Seconds of the tasks of a kind and phase, by "experts backward".
struct KindTimes {
  int64_t tasks = 0;
  double seconds = 0;
};
std::map<std::string, KindTimes> times_by_kind(const Schedule& schedule, const Trace& trace);

/// For plan.json: "timeline" with "step", "streams" [{"place", "stream"}], and "predicted" and
/// "executed", lists of [stream, name, begin, end] in microseconds; and "task_times", one object per
/// kind and phase in the order of the schedule: "name", "tasks", "predicted_s", "executed_s". A trace
/// that is empty is null. Copies of blocks, which are no tasks, come last: "load" and "store".
struct StepTimelines {
  const Schedule& schedule;
  const Trace &predicted, &executed;
  int64_t step = 0;  // that was executed
  std::span<const BlockCopy> predicted_copies = {}, executed_copies = {};
};
Json timeline_json(const StepTimelines& step, const std::vector<std::string>& places);
Json task_times_json(const StepTimelines& step);

}  // namespace hearth
