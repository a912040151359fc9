// The memory and streams that the lists of a run share: lists never run at the same time, so one
// arena of the largest size serves all.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "plan/schedule.h"

namespace hearth {

struct Workspace {
  std::unique_ptr<Arena> arena;
  std::vector<std::unique_ptr<Stream>> streams;  // one each of Schedule::streams
};

/// Sizes of a workspace for these lists, before it is made.
struct WorkspaceNeed {
  size_t arena_bytes = 0;
  ScratchNeed scratch;
  size_t streams = 1;
};
WorkspaceNeed workspace_need(std::span<const Schedule* const> schedules);

/// Reserves and touches everything. `cores`: logical CPUs to bind workers to, empty = unbound.
Workspace make_workspace(Device& device, const WorkspaceNeed& need, int workers,
                         const std::vector<int>& cores);

}  // namespace hearth
