#include "plan/trace.h"

#include "base/json.h"

namespace hearth {

std::string chrome_trace(const Schedule& schedule, const Trace& trace) {
  JsonArray events;
  for (size_t s = 0; s < schedule.streams.size(); ++s) {
    Json name;
    name["name"] = "thread_name";
    name["ph"] = "M";
    name["pid"] = static_cast<int64_t>(schedule.streams[s].place);
    name["tid"] = static_cast<int64_t>(s);
    name["args"]["name"] = schedule.streams[s].name;
    events.push_back(std::move(name));
  }
  for (const TaskTime& time : trace) {
    const Task& task = schedule.tasks[static_cast<size_t>(time.task)];
    Json event;
    event["name"] = describe(task);
    event["cat"] = name_of(task.kind);
    event["ph"] = "X";
    event["pid"] = static_cast<int64_t>(task.place);
    event["tid"] = static_cast<int64_t>(task.stream);
    event["ts"] = time.begin * 1e6;
    event["dur"] = (time.end - time.begin) * 1e6;
    event["args"]["task"] = static_cast<int64_t>(time.task);
    events.push_back(std::move(event));
  }
  Json document;
  document["traceEvents"] = std::move(events);
  document["displayTimeUnit"] = "ms";
  return document.dump();
}

}  // namespace hearth
