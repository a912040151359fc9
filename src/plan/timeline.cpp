#include "plan/timeline.h"

#include <algorithm>
#include <cmath>

namespace hearth {
namespace {

constexpr size_t kMostBars = 1200;  // of a timeline: about 60 KB in plan.json
constexpr size_t kLeastBars = 16;

std::string name_of_kind(TaskKind kind, Phase phase) {
  return std::string(name_of(kind)) + " " + std::string(name_of(phase));
}

/// How much tasks in a row must agree in to become one bar.
enum class Join : uint8_t { same_task, same_layer, same_phase };

bool joins(const TimelineBar& a, const TimelineBar& b, Join join) {
  if (a.stream != b.stream || a.phase != b.phase) return false;
  if (join == Join::same_phase) return true;
  if (a.layer != b.layer) return false;
  return join == Join::same_layer || a.kind == b.kind;
}

void extend(TimelineBar& bar, const TimelineBar& next) {
  bar.several_kinds = bar.several_kinds || next.several_kinds || bar.kind != next.kind;
  bar.several_phases = bar.several_phases || next.several_phases || bar.phase != next.phase;
  if (bar.layer != next.layer) bar.layer = -1;
  bar.end = std::max(bar.end, next.end);
}

std::vector<TimelineBar> joined(const std::vector<TimelineBar>& bars, Join join) {
  std::vector<TimelineBar> result;
  for (const TimelineBar& bar : bars) {
    if (!result.empty() && joins(result.back(), bar, join)) {
      extend(result.back(), bar);
    } else {
      result.push_back(bar);
    }
  }
  return result;
}

/// Joins every `count` neighbours of a stream.
std::vector<TimelineBar> joined_by_number(const std::vector<TimelineBar>& bars, size_t count) {
  std::vector<TimelineBar> result;
  size_t in_last = 0;
  for (const TimelineBar& bar : bars) {
    if (!result.empty() && result.back().stream == bar.stream && in_last < count) {
      extend(result.back(), bar);
      ++in_last;
    } else {
      result.push_back(bar);
      in_last = 1;
    }
  }
  return result;
}

/// "experts backward layer 3", "backward layer 3", "backward", "tasks".
std::string text_of(const TimelineBar& bar) {
  if (bar.several_phases) return "tasks";
  std::string text =
      bar.several_kinds ? std::string(name_of(bar.phase)) : name_of_kind(bar.kind, bar.phase);
  if (bar.layer >= 0) text += " layer " + std::to_string(bar.layer);
  return text;
}

Json bars_json(const Schedule& schedule, const Trace& trace) {
  if (trace.empty()) return nullptr;
  JsonArray list;
  const auto microseconds = [](double seconds) {
    return static_cast<int64_t>(std::llround(seconds * 1e6));
  };
  for (const TimelineBar& bar : bars_of(schedule, trace, kMostBars)) {
    list.push_back(JsonArray{int64_t{bar.stream}, text_of(bar), microseconds(bar.begin),
                             microseconds(bar.end)});
  }
  return list;
}

}  // namespace

std::vector<TimelineBar> bars_of(const Schedule& schedule, const Trace& trace, size_t most) {
  std::vector<TimelineBar> all;
  for (const TaskTime& time : trace) {
    const Task& task = schedule.tasks[static_cast<size_t>(time.task)];
    TimelineBar bar;
    bar.stream = task.stream;
    bar.kind = task.kind;
    bar.phase = task.phase;
    bar.layer = task.layer;
    bar.begin = time.begin;
    bar.end = time.end;
    all.push_back(bar);
  }
  std::stable_sort(all.begin(), all.end(), [](const TimelineBar& a, const TimelineBar& b) {
    return a.stream != b.stream ? a.stream < b.stream : a.begin < b.begin;
  });
  most = std::max({most, kLeastBars, schedule.streams.size()});
  std::vector<TimelineBar> bars;
  for (const Join join : {Join::same_task, Join::same_layer, Join::same_phase}) {
    bars = joined(all, join);
    if (bars.size() <= most) return bars;
  }
  for (size_t count = 2; bars.size() > most; count *= 2) {
    bars = joined_by_number(joined(all, Join::same_phase), count);
  }
  return bars;
}

std::map<std::string, KindTimes> times_by_kind(const Schedule& schedule, const Trace& trace) {
  std::map<std::string, KindTimes> times;
  for (const TaskTime& time : trace) {
    const Task& task = schedule.tasks[static_cast<size_t>(time.task)];
    KindTimes& of = times[name_of_kind(task.kind, task.phase)];
    ++of.tasks;
    of.seconds += time.end - time.begin;
  }
  return times;
}

Json timeline_json(const StepTimelines& step, const std::vector<std::string>& places) {
  JsonArray streams;
  for (const StreamPlan& stream : step.schedule.streams) {
    streams.push_back(
        JsonObject{{"place", places[static_cast<size_t>(stream.place)]}, {"stream", stream.name}});
  }
  return JsonObject{{"step", step.step},
                    {"streams", std::move(streams)},
                    {"predicted", bars_json(step.schedule, step.predicted)},
                    {"executed", bars_json(step.schedule, step.executed)}};
}

/// Adds the copies of blocks, by whether a device gets them.
static void add_copies(const Schedule& schedule, std::span<const BlockCopy> copies,
                       std::map<std::string, KindTimes>& times) {
  for (const BlockCopy& copy : copies) {
    KindTimes& of = times[schedule.is_device(copy.to) ? "load" : "store"];
    ++of.tasks;
    of.seconds += copy.end - copy.begin;
  }
}

Json task_times_json(const StepTimelines& step) {
  auto predicted = times_by_kind(step.schedule, step.predicted);
  auto executed = times_by_kind(step.schedule, step.executed);
  add_copies(step.schedule, step.predicted_copies, predicted);
  add_copies(step.schedule, step.executed_copies, executed);
  JsonArray list;
  std::map<std::string, int64_t> tasks;
  std::vector<std::string> order;
  for (const Task& task : step.schedule.tasks) {
    std::string name = name_of_kind(task.kind, task.phase);
    if (tasks[name]++ == 0) order.push_back(std::move(name));
  }
  const auto seconds = [](const auto& times, const std::string& name) {
    const auto found = times.find(name);
    return found == times.end() ? Json(nullptr) : Json(found->second.seconds);
  };
  for (const char* copies : {"load", "store"}) {
    for (const auto* times : {&predicted, &executed}) {
      const auto found = times->find(copies);
      if (found != times->end()) tasks[copies] = found->second.tasks;  // executed, if it is known
    }
    if (tasks.contains(copies)) order.emplace_back(copies);
  }
  for (const std::string& name : order) {
    list.push_back(JsonObject{{"name", name},
                              {"tasks", tasks[name]},
                              {"predicted_s", seconds(predicted, name)},
                              {"executed_s", seconds(executed, name)}});
  }
  return list;
}

}  // namespace hearth
