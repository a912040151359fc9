// The schedule of a step: its tasks in order, the buffers that the tasks read and write, and the
// addresses of the buffers. Planners (modes/) make it and the executor runs it, independently of
// each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"
#include "layers/body.h"

namespace hearth {

using TaskId = int32_t;  // position in Schedule::tasks
using BufferId = int32_t;

/// What the memory of a buffer is used for; the printed plan groups memory by it.
enum class BufferClass : uint8_t {
  given,     // input of the step
  cache,     // keys and values of decoding, which outlive the step
  saved,     // written in forward or recompute, read in backward
  flow,      // from task to task within one direction
  temporary  // within one task
};
inline constexpr int kBufferClasses = 5;
std::string_view name_of(BufferClass c);

/// A memory with what computes beside it: the host of a rank, a further NUMA node of it, or a device.
struct SchedulePlace {
  int32_t rank = 0;
  /// Of its rank: the values that bodies look at, given and kept ones lie there.
  Place host = kHostPlace;
  bool device = false;
  int32_t lanes = 1;  // compute streams
  int32_t lane = 0;   // of a device: the compute stream of its host's places that works for it
};
/// The places of a run of one rank: its host, the further nodes of it, then devices. `host_lanes`:
/// compute streams of each of the host's places; 1: one for all work. Else one per device, for the
/// work that the host does for that device, so that two devices do not wait for each other.
std::vector<SchedulePlace> places_of_rank(size_t places, int32_t nodes = 1, int32_t host_lanes = 1);

/// One task writes a buffer; later tasks may update it in place. A recompute writes a new buffer,
/// and so does a copy to another place.
struct Buffer {
  Port port;           // its shape
  int32_t layer = -1;  // -1: the value does not belong to a layer (Scope)
  int32_t micro_batch = -1;
  BufferClass use = BufferClass::flow;
  Place place = kHostPlace;
  int32_t lane = 0;  // of the compute stream that touches it (StreamPlan)
  size_t bytes = 0;  // for the largest micro-batch
  /// Buffers of one value of neighbouring micro-batches that one task touches lie at equal distances:
  /// those of a number, which are in the order of their ids, `pitch` bytes apart. -1: alone.
  int32_t strip = -1;
  size_t pitch = 0;
  size_t address = 0;  // offset in the arena of its place
  TaskId first = 0;    // first task that touches it; of an input: first of the schedule
  TaskId last = 0;     // last task that touches it; of a result: last of the schedule
};

struct BufferUse {
  BufferId buffer = 0;
  Port port;  // as this task declares it
  /// Of a routed value (ValueInfo::routed): the rows of the part's experts alone. They lie where they
  /// lie in the whole value. Tasks that write different parts of a buffer do not wait for each other.
  ExpertPart part = {};
};

struct Task {
  int32_t stream = 0;
  Place place = kHostPlace;  // where it runs; of a copy: the place whose stream carries it
  TaskKind kind = TaskKind::embed;
  Phase phase = Phase::forward;
  int32_t layer = -1;
  RowRange rows = {};
  ExpertPart part = {};  // of E and of copies of routed values, if the layer is divided
  /// Port by port, of each one for every micro-batch of `rows`; of a value of a group one in all.
  std::vector<BufferUse> uses;
  std::vector<BlockUse> blocks;
  Work work;
  size_t uses_of(Value value) const {
    return info_of(value).of_group ? 1 : static_cast<size_t>(std::max(1, rows.count()));
  }
};

/// Values on the host that a copy of a value reads to know its bytes, behind source and target. Of a part:
/// the offsets of the layer's experts or of guests' rows, and the split if places divide the experts. Of
/// columns of a divided expert: which they are. Behind them a copy of tokens that may be idle
/// (Schedule::may_be_idle) has the split.
std::vector<Value> sizes_of_copy(Value value, const ExpertPart& part);

/// "attention backward layer 3 micro-batch 1", "experts forward layer 3 micro-batches 0 to 3", for
/// traces and messages.
std::string describe(const Task& task);

struct StreamPlan {
  std::string name = "compute";
  Place place = kHostPlace;
  StreamUse use = StreamUse::compute;
  int32_t lane = 0;  // of compute streams at the same place: the device that it works for, from 0
};

struct Schedule {
  Pass pass = Pass::train;
  std::vector<SchedulePlace> places = {SchedulePlace{}};
  std::vector<StreamPlan> streams = {StreamPlan{}};
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;
  std::vector<size_t> arena_bytes = {0};    // by place
  std::vector<ScratchNeed> scratch = {{}};  // of a compute stream, by place
  ScratchNeed sums_scratch = {};            // of the stream of collectives
  size_t list_bytes = 0;                    // most that a task takes for lists (Body::lists)
  int64_t micro_batches = 1;
  int64_t tokens = 0;   // most tokens of a micro-batch
  int64_t longest = 0;  // most tokens of a sequence; rows of the rope tables
  int64_t cache_rows = 0;
  /// Whether splits are made by a rule while the schedule runs, and where the plan expects each block
  /// to be computed then (PlanInput::decides).
  bool decides = false;
  std::vector<Place> expected = {};
  bool updates = false;  // whether it has update tasks; of several ranks, one may own nothing
  /// Whether the update tasks are those of the step before (PlanInput::rotates).
  bool rotates = false;

  Place host_of(Place place) const { return places[static_cast<size_t>(place)].host; }
  bool is_host(Place place) const { return host_of(place) == place; }
  bool is_device(Place place) const { return places[static_cast<size_t>(place)].device; }
  /// Whether the task computes the experts that a rule gives to its place.
  bool is_decided(const Task& task) const {
    return decides && task.kind == TaskKind::experts && !task.part.all();
  }
  /// Whether the task works for the experts that a split gives to a host, and for nothing else. If the
  /// split gives them no token, it has nothing to do (plan/idle_tasks.h). Of copies: those of rows of such
  /// a part, and those of tokens that only such tasks read, which have the split among their uses.
  bool may_be_idle(const Task& task) const {
    if (!decides || task.part.guests) return false;
    if (task.kind == TaskKind::copy) {
      const bool of_part = task.part.all() || is_host(task.part.place);
      return of_part && task.uses.size() > 2 && task.uses.back().port.value == Value::split;
    }
    const bool brings_tokens = task.kind == TaskKind::dispatch && task.phase != Phase::backward;
    const auto is_split = [](const BufferUse& use) { return use.port.value == Value::split; };
    return is_host(task.place) && task.part.place == task.place &&
           (task.kind == TaskKind::experts || brings_tokens) &&
           std::any_of(task.uses.begin(), task.uses.end(), is_split);
  }
};

/// Raises std::logic_error unless
///   - every value that is read is an input or was written before,
///   - every task touches only buffers at its own place, or values that always live on its host,
///   - who reads a whole routed value finds the parts of all places that compute experts of its layer,
///   - every copy joins two places; a copy of a part also reads the offsets and the split on its host,
///   - the buffers of a value that a task of several micro-batches touches are at equal distances,
///   - every buffer lies inside its arena, and no two buffers that are live at once overlap.
void validate(const Schedule& schedule);

/// For each task, the earlier tasks that it must follow; ascending, without duplicates. Derived
/// from what tasks read and write: buffers by address, weights and gradients by block. So the reuse
/// of an address is a dependency like any other.
std::vector<std::vector<TaskId>> dependencies(const Schedule& schedule);

}  // namespace hearth
