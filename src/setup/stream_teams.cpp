#include "setup/stream_teams.h"

#include <algorithm>

#include "base/counted.h"

namespace hearth {

namespace {

/// Takes `count` of the free CPUs: those near the device first, then the lowest.
std::vector<int> take(std::vector<int>& free, const std::vector<int>& near, size_t count) {
  std::stable_partition(free.begin(), free.end(), [&](int cpu) {
    return std::find(near.begin(), near.end(), cpu) != near.end();
  });
  const auto end = free.begin() + static_cast<std::ptrdiff_t>(std::min(count, free.size()));
  std::vector<int> own(free.begin(), end);
  free.erase(free.begin(), end);
  std::sort(free.begin(), free.end());
  std::sort(own.begin(), own.end());
  return own;
}

}  // namespace

StreamTeams share_workers(const std::vector<TeamRequest>& streams, const std::vector<int>& cpus,
                          int workers) {
  StreamTeams result;
  const auto count = static_cast<int>(streams.size());
  if (count > 1 && workers < count) {
    result.teams.assign(streams.size(), StreamTeam{workers, cpus});
    result.warning = counted(count, "compute stream") + " share " + counted(workers, "core") +
                     ": they wait for each other";
    return result;
  }
  std::vector<int> free = cpus;
  for (int s = 0; s < count; ++s) {
    StreamTeam team;
    team.workers = (workers + count - 1 - s) / count;  // the first streams have one more
    if (!cpus.empty()) {
      team.cores =
          take(free, streams[static_cast<size_t>(s)].near, static_cast<size_t>(team.workers));
    }
    result.teams.push_back(std::move(team));
  }
  return result;
}

}  // namespace hearth
