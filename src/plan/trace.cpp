#include "plan/trace.h"

#include "base/json.h"

namespace hearth {
namespace {

/// The name of a process or a thread.
Json name_event(const char* kind, Place place, size_t stream, const std::string& name) {
  Json event;
  event["name"] = kind;
  event["ph"] = "M";
  event["pid"] = static_cast<int64_t>(place);
  event["tid"] = static_cast<int64_t>(stream);
  event["args"]["name"] = name;
  return event;
}

}  // namespace

std::string link_name(Place from, Place to, std::span<const std::string> places) {
  return places[static_cast<size_t>(from)] + "->" + places[static_cast<size_t>(to)];
}

std::string link_name(const Schedule& schedule, const Task& copy,
                      std::span<const std::string> places) {
  const auto place_of = [&](const BufferUse& use) {
    return schedule.buffers[static_cast<size_t>(use.buffer)].place;
  };
  return link_name(place_of(copy.uses[0]), place_of(copy.uses[1]), places);
}

/// The stream of a device's copies in a direction; the first of all if there is none.
static size_t copy_stream(const Schedule& schedule, Place device, StreamUse use) {
  for (size_t s = 0; s < schedule.streams.size(); ++s) {
    if (schedule.streams[s].place == device && schedule.streams[s].use == use) return s;
  }
  return 0;
}

static Json block_event(const Schedule& schedule, const BlockCopy& copy,
                        std::span<const std::string> places) {
  const bool in = schedule.is_device(copy.to);
  const Place device = in ? copy.to : copy.from;
  const char* what = copy.gradient ? "gradient of block " : "block ";
  Json event;
  event["name"] = "copy of " + (what + std::to_string(copy.block));
  event["cat"] = name_of(TaskKind::copy);
  event["ph"] = "X";
  event["pid"] = static_cast<int64_t>(device);
  event["tid"] = static_cast<int64_t>(
      copy_stream(schedule, device, in ? StreamUse::copy_in : StreamUse::copy_out));
  event["ts"] = copy.begin * 1e6;
  event["dur"] = (copy.end - copy.begin) * 1e6;
  event["args"]["task"] = nullptr;
  event["args"]["link"] = link_name(copy.from, copy.to, places);
  event["args"]["bytes"] = copy.bytes;
  event["args"]["block"] = static_cast<int64_t>(copy.block);
  return event;
}

std::string chrome_trace(const Schedule& schedule, const Trace& trace,
                         std::span<const std::string> places, std::span<const BlockCopy> blocks) {
  JsonArray events;
  for (size_t place = 0; place < places.size(); ++place) {
    events.push_back(name_event("process_name", static_cast<Place>(place), 0, places[place]));
  }
  for (size_t s = 0; s < schedule.streams.size(); ++s) {
    const StreamPlan& stream = schedule.streams[s];
    events.push_back(name_event("thread_name", stream.place, s, stream.name));
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
    if (task.kind == TaskKind::copy) {
      event["args"]["link"] = link_name(schedule, task, places);
      event["args"]["bytes"] = time.bytes;
      event["args"]["block"] = nullptr;
      event["args"]["value"] = info_of(task.uses.front().port.value).name;
    }
    events.push_back(std::move(event));
  }
  for (const BlockCopy& copy : blocks) events.push_back(block_event(schedule, copy, places));
  Json document;
  document["traceEvents"] = std::move(events);
  document["displayTimeUnit"] = "ms";
  return document.dump();
}

}  // namespace hearth
