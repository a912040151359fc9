// The memory, streams and threads that the schedules of a run share. Schedules never run at the same
// time, so each place has one arena, as large as the largest schedule needs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "plan/schedule.h"
#include "runtime/stream_team.h"
#include "runtime/stream_threads.h"
#include "runtime/task_lists.h"

namespace hearth {

struct Workspace {
  std::vector<std::unique_ptr<Arena>> arenas;     // by place; null if no schedule needs one
  std::vector<std::unique_ptr<Stream>> streams;   // one per element of Schedule::streams
  std::vector<std::unique_ptr<TaskLists>> lists;  // one per stream
  std::unique_ptr<StreamThreads> threads;         // one per stream
};

/// What a workspace needs, before it is made.
struct WorkspaceNeed {
  std::vector<size_t> arena_bytes;   // by place
  std::vector<ScratchNeed> scratch;  // of a compute stream, by place
  ScratchNeed sums_scratch = {};     // of the stream of collectives
  size_t list_bytes = 0;             // of a compute stream
  std::vector<StreamPlan> streams;
};
/// All schedules must be of one run, so that they have the same places.
WorkspaceNeed workspace_need(std::span<const Schedule* const> schedules);

/// Reserves and touches all memory, and starts the threads. `devices` are by place, the host first.
/// If the host cannot access a device's memory, the host's arena is pinned. `teams`: of the compute
/// streams of each place, by lane; places without one have one worker.
Workspace make_workspace(std::span<Device* const> devices, const WorkspaceNeed& need,
                         std::span<const std::vector<StreamTeam>> teams);
/// The same with equal teams.
Workspace make_workspace(std::span<Device* const> devices, const WorkspaceNeed& need, int workers,
                         const std::vector<int>& cores);

}  // namespace hearth
