#include "runtime/workspace.h"

#include <algorithm>

#include "base/pool.h"

namespace hearth {

WorkspaceNeed workspace_need(std::span<const Schedule* const> schedules) {
  WorkspaceNeed need;
  for (const Schedule* s : schedules) {
    const size_t places = std::max(need.arena_bytes.size(), s->arena_bytes.size());
    need.arena_bytes.resize(places);
    need.scratch.resize(places);
    for (size_t place = 0; place < s->arena_bytes.size(); ++place) {
      need.arena_bytes[place] = std::max(need.arena_bytes[place], s->arena_bytes[place]);
      need.scratch[place] = max_of(need.scratch[place], s->scratch[place]);
    }
    need.sums_scratch = max_of(need.sums_scratch, s->sums_scratch);
    need.list_bytes = std::max(need.list_bytes, s->list_bytes);
    if (s->streams.size() > need.streams.size()) need.streams = s->streams;
  }
  return need;
}

namespace {

/// Memory for the activations of a place.
std::unique_ptr<Arena> reserve(std::span<Device* const> devices, size_t place, size_t bytes) {
  constexpr const char* kName = "activations";
  const std::vector<MemorySpace> spaces = devices[place]->spaces();
  const auto is_own = [](const MemorySpace& space) { return space.kind == SpaceKind::device; };
  if (std::any_of(spaces.begin(), spaces.end(), is_own)) {
    return devices[place]->reserve(kName, SpaceKind::device, bytes);
  }
  for (Device* device : devices) {
    if (!device->host_reaches()) return device->reserve(kName, SpaceKind::pinned, bytes);
  }
  return devices[place]->reserve(kName, SpaceKind::host, bytes);
}

}  // namespace

Workspace make_workspace(std::span<Device* const> devices, const WorkspaceNeed& need,
                         std::span<const std::vector<StreamTeam>> teams) {
  HEARTH_CHECK(need.arena_bytes.size() <= devices.size(), "workspace: a schedule of more places");
  const auto team_of = [&](size_t place, size_t lane) {
    return place < teams.size() && lane < teams[place].size() ? teams[place][lane] : StreamTeam{};
  };
  Workspace workspace;
  for (size_t place = 0; place < need.arena_bytes.size(); ++place) {
    auto& arena = workspace.arenas.emplace_back();
    if (need.arena_bytes[place] == 0) continue;
    arena = reserve(devices, place, need.arena_bytes[place]);
    const StreamTeam team = team_of(place, 0);
    arena->touch(Pool(team.workers, team.cores));
  }
  for (const StreamPlan& plan : need.streams) {
    const auto place = static_cast<size_t>(plan.place);
    const StreamTeam team = team_of(place, static_cast<size_t>(plan.lane));
    StreamOptions options;
    options.name = plan.name;
    options.use = plan.use;
    options.cores = team.cores;
    const bool computes = plan.use == StreamUse::compute;
    const bool sums = plan.use == StreamUse::collective;
    const bool has_lists = computes || plan.use == StreamUse::control;
    workspace.lists.push_back(std::make_unique<TaskLists>(has_lists ? need.list_bytes : 0));
    if (computes || sums) {
      const ScratchNeed& scratch = sums ? need.sums_scratch : need.scratch[place];
      options.workers = sums ? 1 : team.workers;
      options.scratch_bytes = scratch.shared;
      options.worker_scratch_bytes = scratch.per_worker;
    }
    workspace.streams.push_back(devices[place]->create_stream(options));
  }
  workspace.threads = std::make_unique<StreamThreads>(workspace.streams.size());
  return workspace;
}

Workspace make_workspace(std::span<Device* const> devices, const WorkspaceNeed& need, int workers,
                         const std::vector<int>& cores) {
  size_t lanes = 1;
  for (const StreamPlan& stream : need.streams) {
    lanes = std::max(lanes, static_cast<size_t>(stream.lane) + 1);
  }
  const std::vector<StreamTeam> of_place(lanes, StreamTeam{workers, cores});
  return make_workspace(devices, need,
                        std::vector<std::vector<StreamTeam>>(devices.size(), of_place));
}

}  // namespace hearth
