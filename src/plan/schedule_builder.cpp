#include "plan/schedule_builder.h"

#include <algorithm>

#include "base/arena.h"
#include "plan/addresses.h"

namespace hearth {

namespace {

// The streams of a schedule: one for the host, then three for each device.
constexpr int32_t kStreamsOfDevice = 3;

int32_t stream_of(Place place, StreamUse use) {
  if (place == kHostPlace) return 0;
  return 1 + kStreamsOfDevice * (place - 1) + static_cast<int32_t>(use);
}

std::vector<StreamPlan> streams_of(size_t places) {
  std::vector<StreamPlan> streams = {StreamPlan{}};
  for (Place place = 1; static_cast<size_t>(place) < places; ++place) {
    const std::string device = "place " + std::to_string(place);
    streams.push_back({device + " compute", place, StreamUse::compute});
    streams.push_back({device + " copy in", place, StreamUse::copy_in});
    streams.push_back({device + " copy out", place, StreamUse::copy_out});
  }
  return streams;
}

Place place_of_value(Value value, Place task) { return info_of(value).host ? kHostPlace : task; }

}  // namespace

ScheduleBuilder::ScheduleBuilder(const PlanInput& input, Pass pass, int64_t cache_rows)
    : input_(input) {
  schedule_.pass = pass;
  schedule_.micro_batches = input.micro_batches;
  schedule_.tokens = input.tokens;
  schedule_.longest = input.longest;
  schedule_.cache_rows = cache_rows;
  schedule_.streams = streams_of(input.ops.size());
  schedule_.scratch.resize(input.ops.size());
}

BufferId ScheduleBuilder::new_buffer(const Port& port, const Key& key, BufferClass use,
                                     Place place) {
  const auto id = static_cast<BufferId>(schedule_.buffers.size());
  Buffer buffer;
  buffer.port = port;
  buffer.layer = std::get<1>(key);
  buffer.micro_batch = std::get<2>(key);
  buffer.use = use;
  buffer.place = place;
  buffer.bytes = align_up(port.bytes(input_.tokens));
  buffer.first = static_cast<TaskId>(schedule_.tasks.size());
  schedule_.buffers.push_back(buffer);
  newest_[key][place] = id;
  return id;
}

ScheduleBuilder::Key ScheduleBuilder::key_of(const Port& port, int32_t layer,
                                             int32_t micro_batch) const {
  const Scope scope = info_of(port.value).scope;
  return {port.value, scope == Scope::layer ? layer + port.layer_offset : -1,
          scope == Scope::step ? -1 : micro_batch};
}

void ScheduleBuilder::add_copy(BufferId from, const Key& key, Phase phase, Place place) {
  const Buffer source = schedule_.buffers[static_cast<size_t>(from)];
  Port port = source.port;
  port.layer_offset = 0;
  Task task;
  task.kind = TaskKind::copy;
  task.phase = phase;
  task.layer = source.layer;
  task.micro_batch = source.micro_batch;
  // A copy to a device runs on that device's stream, a copy to the host on the stream of the device
  // that holds the value.
  task.place = place == kHostPlace ? source.place : place;
  task.stream =
      stream_of(task.place, place == kHostPlace ? StreamUse::copy_out : StreamUse::copy_in);
  port.access = Access::read;
  task.uses.push_back({from, port});
  port.access = Access::write;
  task.uses.push_back({new_buffer(port, key, BufferClass::flow, place), port});
  schedule_.tasks.push_back(std::move(task));
}

/// Makes sure that the latest version of a value that a task reads is at the place.
void ScheduleBuilder::bring(const Port& port, const Key& key, Phase phase, Place place) {
  if (port.access == Access::temporary || port.access == Access::write) return;
  auto it = newest_.find(key);
  if (it == newest_.end()) {
    if (place == kHostPlace || !info_of(port.value).given) return;
    Port given = port;
    given.access = Access::read;
    new_buffer(given, key, BufferClass::given, kHostPlace);
    it = newest_.find(key);
  }
  if (it->second.contains(place)) return;
  add_copy(it->second.begin()->second, key, phase, place);
}

BufferId ScheduleBuilder::buffer_of(const Port& port, const Key& key, Place place) {
  const ValueInfo& info = info_of(port.value);
  if (port.access == Access::temporary || port.access == Access::write) {
    newest_[key].clear();
    return new_buffer(port, key,
                      port.access == Access::write ? BufferClass::flow : BufferClass::temporary,
                      place);
  }
  const auto it = newest_.find(key);
  if (it != newest_.end()) {
    const BufferId id = it->second.at(place);
    if (port.access == Access::update) it->second = {{place, id}};  // other copies are stale
    return id;
  }
  const bool cached = port.access == Access::update && schedule_.cache_rows > 0;
  HEARTH_CHECK(info.given || cached,
               "schedule: nobody writes " + std::string(info.name) + " before it is read");
  return new_buffer(port, key, info.given ? BufferClass::given : BufferClass::cache, place);
}

TaskShape ScheduleBuilder::shape_of(Phase phase, int32_t layer, Place place) const {
  return {input_.spec, input_.settings, input_.table,   schedule_.pass,       phase,
          layer,       input_.tokens,   input_.longest, schedule_.cache_rows, place};
}

bool ScheduleBuilder::has_blocks(TaskKind kind, Phase phase, int32_t layer, Place place) const {
  return !body_of(kind).blocks(shape_of(phase, layer, place)).empty();
}

void ScheduleBuilder::add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch,
                          Place place) {
  const TaskShape shape = shape_of(phase, layer, place);
  const Body& body = body_of(kind);
  Task task;
  task.kind = kind;
  task.place = place;
  task.stream = stream_of(place, StreamUse::compute);
  task.phase = phase;
  task.layer = layer;
  task.micro_batch = micro_batch;
  task.blocks = body.blocks(shape);
  task.work = body.work(shape);
  for (const BlockUse& use : task.blocks) {
    for (BlockId b = use.begin; b < use.end; ++b) {
      HEARTH_CHECK(input_.table.block(b).place == place,
                   "schedule: a block is at another place than its task: " + describe(task));
    }
  }
  const std::vector<Port> ports = body.ports(shape);
  for (const Port& port : ports) {
    bring(port, key_of(port, layer, micro_batch), phase, place_of_value(port.value, place));
  }
  for (const Port& port : ports) {
    const Key key = key_of(port, layer, micro_batch);
    task.uses.push_back({buffer_of(port, key, place_of_value(port.value, place)), port});
  }
  const auto at = static_cast<size_t>(place);
  schedule_.scratch[at] = max_of(schedule_.scratch[at], body.scratch(shape, *input_.ops[at]));
  schedule_.tasks.push_back(std::move(task));
}

void ScheduleBuilder::set_lifetimes() {
  std::vector<Buffer>& buffers = schedule_.buffers;
  const auto end = static_cast<TaskId>(schedule_.tasks.size()) - 1;
  std::vector<bool> made_forward(buffers.size());
  for (TaskId id = 0; id <= end; ++id) {
    const Task& task = schedule_.tasks[static_cast<size_t>(id)];
    for (const BufferUse& use : task.uses) {
      const auto b = static_cast<size_t>(use.buffer);
      buffers[b].last = id;
      if (use.port.access == Access::write) {
        made_forward[b] = task.phase != Phase::backward && task.kind != TaskKind::head;
      } else if (task.phase == Phase::backward && made_forward[b]) {
        buffers[b].use = BufferClass::saved;
      }
    }
  }
  for (Buffer& buffer : buffers) {
    // Inputs are written before the first task, caches outlive the step, results are read after it.
    const bool given = buffer.use == BufferClass::given || buffer.use == BufferClass::cache;
    const bool kept = info_of(buffer.port.value).kept && buffer.place == kHostPlace;
    if (given) buffer.first = 0;
    if (given || kept) buffer.last = end;
  }
}

Schedule ScheduleBuilder::finish() {
  for (auto& [key, places] : newest_) {
    if (!info_of(std::get<0>(key)).kept || places.contains(kHostPlace)) continue;
    add_copy(places.begin()->second, key, Phase::forward, kHostPlace);
  }
  set_lifetimes();
  schedule_.arena_bytes = assign_addresses(schedule_.buffers, input_.ops.size());
  validate(schedule_);
  return std::move(schedule_);
}

}  // namespace hearth
