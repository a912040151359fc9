#include "runtime/workspace.h"

#include <algorithm>

#include "base/pool.h"

namespace hearth {

WorkspaceNeed workspace_need(std::span<const Schedule* const> schedules) {
  WorkspaceNeed need;
  for (const Schedule* s : schedules) {
    need.arena_bytes = std::max(need.arena_bytes, s->arena_bytes);
    need.scratch = max_of(need.scratch, s->scratch);
    need.streams = std::max(need.streams, s->streams.size());
  }
  return need;
}

Workspace make_workspace(Device& device, const WorkspaceNeed& need, int workers,
                         const std::vector<int>& cores) {
  Workspace workspace;
  workspace.arena = device.reserve("activations", SpaceKind::host, need.arena_bytes);
  workspace.arena->touch(Pool(workers, cores));
  for (size_t i = 0; i < need.streams; ++i) {
    StreamOptions options;
    options.name = i == 0 ? "compute" : "compute " + std::to_string(i);
    options.workers = workers;
    options.cores = cores;
    options.scratch_bytes = need.scratch.shared;
    options.worker_scratch_bytes = need.scratch.per_worker;
    workspace.streams.push_back(device.create_stream(options));
  }
  return workspace;
}

}  // namespace hearth
