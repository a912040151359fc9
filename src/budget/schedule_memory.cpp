#include "budget/schedule_memory.h"

#include "device/cuda_stream.h"
#include "device/host_stream.h"

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
  constexpr uint64_t kBlock = 32;  // around an allocation
  uint64_t bytes = schedule.buffers.size() * sizeof(Buffer);
  for (const Task& task : schedule.tasks) {
    bytes += sizeof(Task) + 96 + 3 * kBlock + task.blocks.size() * sizeof(BlockUse) +
             task.uses.size() * (sizeof(BufferUse) + sizeof(BoundPort));
  }
  return bytes + bytes / 2;  // vectors grow by doubling
}

uint64_t travel_table_bytes(const ParameterTable& table) {
  constexpr uint64_t kName = 80, kTurns = 96;  // of a tensor: its name, and its part in the turns
  return table.tensors().size() * (sizeof(Tensor) + kName + kTurns);
}

}  // namespace hearth
