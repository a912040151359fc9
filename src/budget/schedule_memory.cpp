#include "budget/schedule_memory.h"

#include <bit>

#include "base/heap_bytes.h"
#include "device/cuda_stream.h"
#include "device/host_stream.h"
#include "plan/trace.h"

namespace hearth {

size_t arena_bytes(const Schedule& schedule, Place place) {
  return place < std::ssize(schedule.arena_bytes) ? schedule.arena_bytes[static_cast<size_t>(place)]
                                                  : 0;
}
ScratchNeed scratch_of(const Schedule& schedule, Place place) {
  return place < std::ssize(schedule.scratch) ? schedule.scratch[static_cast<size_t>(place)]
                                              : ScratchNeed{};
}

static std::string activations_name(const Schedule& schedule) {
  return schedule.pass == Pass::train  ? "activations"
         : schedule.pass == Pass::eval ? "activations of evaluation"
                                       : "activations of decoding";
}

std::vector<MemoryLine> arena_lines(const Schedule& schedule, Place place,
                                    const std::string& bounds) {
  std::vector<uint64_t> best(kBufferClasses), now(kBufferClasses);
  uint64_t best_total = 0;
  std::vector<std::vector<const Buffer*>> begins(schedule.tasks.size()),
      ends(schedule.tasks.size());
  for (const Buffer& b : schedule.buffers) {
    if (b.place != place) continue;
    begins[static_cast<size_t>(b.first)].push_back(&b);
    ends[static_cast<size_t>(b.last)].push_back(&b);
  }
  uint64_t total = 0;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    for (const Buffer* b : begins[t]) {
      now[static_cast<size_t>(b->use)] += b->bytes;
      total += b->bytes;
    }
    if (total > best_total) {
      best_total = total;
      best = now;
    }
    for (const Buffer* b : ends[t]) {
      now[static_cast<size_t>(b->use)] -= b->bytes;
      total -= b->bytes;
    }
  }
  const std::string basis = "derived: buffers at the fullest task; tokens: " + bounds;
  std::vector<MemoryLine> lines;
  for (int c = 0; c < kBufferClasses; ++c) {
    if (best[static_cast<size_t>(c)] == 0) continue;
    lines.push_back(
        {activations_of(schedule.pass),
         activations_name(schedule) + ": " + std::string(name_of(static_cast<BufferClass>(c))),
         best[static_cast<size_t>(c)], basis});
  }
  const uint64_t gaps = arena_bytes(schedule, place) - best_total;
  if (gaps > 0) {
    lines.push_back({activations_of(schedule.pass),
                     activations_name(schedule) + ": between buffers", gaps,
                     "derived: arena less its buffers"});
  }
  return lines;
}

uint64_t scratch_bytes(const ScratchNeed& need, const ComputePlace& place) {
  uint64_t bytes = 0;
  for (const StreamTeam& team : place.teams) {
    StreamOptions options;
    options.workers = team.workers;
    options.scratch_bytes = need.shared;
    options.worker_scratch_bytes = need.per_worker;
    bytes +=
        place.host_reaches ? HostStream::memory_bytes(options) : CudaStream::memory_bytes(options);
  }
  return bytes;
}

uint64_t collective_scratch_bytes(const ScratchNeed& need) {
  StreamOptions options;
  options.scratch_bytes = need.shared;
  options.worker_scratch_bytes = need.per_worker;
  return HostStream::memory_bytes(options);
}

int workers_of(const ComputePlace& place) {
  int workers = 0;
  for (const StreamTeam& team : place.teams) workers += team.workers;
  return workers;
}

uint64_t schedule_bytes(const Schedule& schedule) {
  constexpr uint64_t kValue = map_entry_bytes(2 * sizeof(uint64_t), false);  // found by its key
  constexpr uint64_t kLists = 2 * sizeof(std::vector<TaskId>), kTimes = 64, kPace = 28;
  constexpr uint64_t kTraces = 2 * sizeof(TaskTime);  // predicted and executed
  constexpr uint64_t kEvent = heap_bytes(2 * sizeof(TaskId)) + heap_bytes(64);
  const uint64_t of_task = sizeof(Task) + sizeof(void*) + 2 * sizeof(TaskId) + kLists + kTimes +
                           kPace + kTraces + (schedule.streams.size() > 1 ? kEvent : 0);
  uint64_t bytes = schedule.buffers.size() * (sizeof(Buffer) + kValue);
  for (const Task& task : schedule.tasks) {
    size_t ports = 0;
    for (size_t use = 0; use < task.uses.size(); ++ports) {
      use += task.uses_of(task.uses[use].port.value);
    }
    bytes += of_task + heap_bytes(task.uses.capacity() * sizeof(BufferUse)) +
             heap_bytes(task.blocks.capacity() * sizeof(BlockUse)) +
             heap_bytes(std::bit_ceil(ports) * sizeof(BoundPort));
  }
  return bytes;
}

uint64_t travel_table_bytes(const ParameterTable& table) {
  constexpr uint64_t kTurns = 96;  // of a tensor: its part in the turns
  return table.memory_bytes() + kTurns * table.tensors().size();
}

}  // namespace hearth
