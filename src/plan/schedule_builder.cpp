#include "plan/schedule_builder.h"

#include <algorithm>

#include "base/arena.h"
#include "plan/addresses.h"

namespace hearth {

ScheduleBuilder::ScheduleBuilder(const PlanInput& input, Pass pass, int64_t cache_rows)
    : input_(input) {
  schedule_.pass = pass;
  schedule_.micro_batches = input.micro_batches;
  schedule_.tokens = input.tokens;
  schedule_.longest = input.longest;
  schedule_.cache_rows = cache_rows;
}

BufferId ScheduleBuilder::new_buffer(const Port& port, const Key& key, BufferClass use) {
  const auto id = static_cast<BufferId>(schedule_.buffers.size());
  Buffer buffer;
  buffer.port = port;
  buffer.layer = std::get<1>(key);
  buffer.micro_batch = std::get<2>(key);
  buffer.use = use;
  buffer.bytes = align_up(port.bytes(input_.tokens));
  buffer.first = static_cast<TaskId>(schedule_.tasks.size());
  schedule_.buffers.push_back(buffer);
  newest_[key] = id;
  return id;
}

BufferId ScheduleBuilder::buffer_of(const Port& port, int32_t layer, int32_t micro_batch) {
  const ValueInfo& info = info_of(port.value);
  const Key key{port.value, info.scope == Scope::layer ? layer + port.layer_offset : -1,
                info.scope == Scope::step ? -1 : micro_batch};
  if (port.access == Access::temporary) return new_buffer(port, key, BufferClass::temporary);
  if (port.access == Access::write) return new_buffer(port, key, BufferClass::flow);
  const auto it = newest_.find(key);
  if (it != newest_.end()) return it->second;
  const bool cached = port.access == Access::update && schedule_.cache_rows > 0;
  HEARTH_CHECK(info.given || cached,
               "schedule: nobody writes " + std::string(info.name) + " before it is read");
  return new_buffer(port, key, info.given ? BufferClass::given : BufferClass::cache);
}

void ScheduleBuilder::add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch) {
  const TaskShape shape{input_.spec, input_.settings, input_.table,   schedule_.pass,      phase,
                        layer,       input_.tokens,   input_.longest, schedule_.cache_rows};
  const Body& body = body_of(kind);
  Task task;
  task.kind = kind;
  task.phase = phase;
  task.layer = layer;
  task.micro_batch = micro_batch;
  task.blocks = body.blocks(shape);
  task.work = body.work(shape);
  for (const Port& port : body.ports(shape)) {
    task.uses.push_back({buffer_of(port, layer, micro_batch), port});
  }
  schedule_.scratch = max_of(schedule_.scratch, body.scratch(shape, input_.ops));
  schedule_.tasks.push_back(std::move(task));
}

Schedule ScheduleBuilder::finish() {
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
    // Given values are written before the first task, caches live on, kept ones are read at last.
    const bool given = buffer.use == BufferClass::given || buffer.use == BufferClass::cache;
    if (given) buffer.first = 0;
    if (given || info_of(buffer.port.value).kept) buffer.last = end;
  }
  schedule_.arena_bytes = assign_addresses(buffers);
  validate(schedule_);
  return std::move(schedule_);
}

}  // namespace hearth
