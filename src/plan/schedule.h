// The schedule of a step: coarse tasks in order, with the buffers they read and write and the
// addresses of those. Planners (modes/) emit it, the executor runs it; both only see this object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"
#include "layers/body.h"

namespace hearth {

using TaskId = int32_t;  // position in the list
using BufferId = int32_t;

/// What memory is used for, as the plan's lines name it. `given`: inputs of the step. `cache`: keys
/// and values of decoding, living over steps. `saved`: made in forward (or recompute), read in
/// backward. `flow`: between tasks of one direction. `temporary`: within a task.
enum class BufferClass : uint8_t { given, cache, saved, flow, temporary };
inline constexpr int kBufferClasses = 5;
std::string_view name_of(BufferClass c);

/// One writer (a body that updates in place follows it); a recompute writes a new buffer, and so does
/// a copy to another place.
struct Buffer {
  Port port;           // shape
  int32_t layer = -1;  // what it belongs to; -1 where its scope says so
  int32_t micro_batch = -1;
  BufferClass use = BufferClass::flow;
  Place place = kHostPlace;
  size_t bytes = 0;    // at the bound of tokens
  size_t address = 0;  // offset in the schedule's arena of that place
  TaskId first = 0;    // live from the first to the last task that touches it, in list order;
  TaskId last = 0;     // given and kept values as long as they must be
};

struct BufferUse {
  BufferId buffer = 0;
  Port port;  // as this task declares it
};

struct Task {
  int32_t stream = 0;
  Place place = kHostPlace;  // where it runs; of a copy: whose stream carries it
  TaskKind kind = TaskKind::embed;
  Phase phase = Phase::forward;
  int32_t layer = -1;
  int32_t micro_batch = -1;
  std::vector<BufferUse> uses;
  std::vector<BlockUse> blocks;
  Work work;
};

/// "attention backward layer 3 micro-batch 1", for traces and messages.
std::string describe(const Task& task);

struct StreamPlan {
  std::string name = "compute";
  Place place = kHostPlace;
  StreamUse use = StreamUse::compute;
};

struct Schedule {
  Pass pass = Pass::train;
  std::vector<StreamPlan> streams = {StreamPlan{}};
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;
  std::vector<size_t> arena_bytes = {0};    // by place
  std::vector<ScratchNeed> scratch = {{}};  // of a compute stream, by place
  int64_t micro_batches = 1;
  int64_t tokens = 0;   // bound of a micro-batch
  int64_t longest = 0;  // bound of a sequence, rows of the rope tables
  int64_t cache_rows = 0;
};

/// Raises std::logic_error unless every read has an earlier writer or is given, tasks touch what is
/// at their place (and values that live on the host), copies join two places, buffers lie inside
/// their arenas, and no two that live at the same time overlap.
void validate(const Schedule& schedule);

/// For each task the earlier tasks that it must follow, from what they read and write: buffers by
/// address (so that reuse of an address is a dependency like any other), weights and gradients by
/// block. Ascending, without duplicates.
std::vector<std::vector<TaskId>> dependencies(const Schedule& schedule);

}  // namespace hearth
