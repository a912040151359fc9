// The memory and streams that the lists of a run share: lists never run at the same time, so one
// arena of the largest size at each place serves all.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "plan/schedule.h"

namespace hearth {

struct Workspace {
  std::vector<std::unique_ptr<Arena>> arenas;    // by place; null where no list needs one
  std::vector<std::unique_ptr<Stream>> streams;  // one each of Schedule::streams
};

/// Sizes of a workspace for these lists, before it is made.
struct WorkspaceNeed {
  std::vector<size_t> arena_bytes;   // by place
  std::vector<ScratchNeed> scratch;  // of a compute stream, by place
  std::vector<StreamPlan> streams;
};
/// Lists of one run: of the same places.
WorkspaceNeed workspace_need(std::span<const Schedule* const> schedules);

/// Reserves and touches everything. devices: by place, the host's first. Where a device's memory is
/// not reached by the host, the host's arena is pinned for it. `cores`: logical CPUs to bind workers
/// to, empty = unbound.
Workspace make_workspace(std::span<Device* const> devices, const WorkspaceNeed& need, int workers,
                         const std::vector<int>& cores);

}  // namespace hearth
