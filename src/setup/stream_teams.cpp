#include "setup/stream_teams.h"

#include <algorithm>

#include "base/counted.h"
#include "base/log.h"

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

/// The CPUs near a device; empty: any.
std::vector<int> near(const ComputePlace& device, const Topology& topology) {
  if (topology.find_root(device.seat.root) == nullptr) return {};
  return topology.worker_cpus_near_root(device.seat.root);
}

/// Whose workers the streams of a device share: position of the node near it, else in turn.
size_t home_node(const RunDevices& run, std::span<const HostNode> nodes, size_t at) {
  for (size_t node = 0; node < nodes.size(); ++node) {
    const std::vector<int>& seats = run.places[at].seat.nodes;
    const bool one = seats.size() < nodes.size();  // all nodes: near none in particular
    if (one && std::find(seats.begin(), seats.end(), nodes[node].number) != seats.end()) {
      return node;
    }
  }
  return (at - nodes.size()) % nodes.size();
}

}  // namespace

StreamTeams share_workers(const std::vector<TeamRequest>& streams, const std::vector<int>& cpus,
                          int workers) {
  StreamTeams result;
  workers = std::max(1, workers);
  const auto count = static_cast<int>(streams.size());
  if (count > 1 && workers < count) {
    for (size_t s = 0; s < streams.size(); ++s) {  // one worker each, in turn on the cores
      StreamTeam team;
      if (!cpus.empty()) team.cores = {cpus[s % cpus.size()]};
      result.teams.push_back(std::move(team));
    }
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

void assign_teams(RunDevices& run, std::span<const HostNode> nodes, const Topology& topology) {
  const std::vector<Place> computing = run.of_model.all();
  const size_t devices = run.of_model.dense.size();
  const size_t lanes = run.of_model.experts.empty() ? 1 : devices;
  for (size_t at = nodes.size(); at < run.places.size(); ++at) {
    if (!run.places[at].host_reaches) run.places[at].teams = {{}};  // a thread issues its work
  }
  for (size_t node = 0; node < nodes.size(); ++node) {
    const auto place = static_cast<Place>(node);
    // Weights that travel have their homes, norms and updates on the host.
    const bool updates = place == kHostPlace && run.of_model.travel != Travel::never;
    const bool computes =
        updates || std::find(computing.begin(), computing.end(), place) != computing.end();
    std::vector<size_t> guests;  // devices that share the node's workers
    for (size_t at = nodes.size(); at < run.places.size(); ++at) {
      if (home_node(run, nodes, at) == node && run.places[at].teams.empty()) guests.push_back(at);
    }
    std::vector<TeamRequest> requests;
    for (size_t lane = 0; computes && lane < lanes; ++lane) {
      const auto device = nodes.size() + lane;
      requests.push_back(
          {device < run.places.size() ? near(run.places[device], topology) : std::vector<int>{}});
    }
    for (const size_t at : guests) requests.push_back({near(run.places[at], topology)});
    StreamTeams shared = share_workers(requests, nodes[node].cpus, nodes[node].workers);
    if (!shared.warning.empty()) {
      log_warning(run.places[node].budget.name + ": " + shared.warning);
    }
    std::vector<StreamTeam>& host = run.places[node].teams;
    host.assign(lanes, StreamTeam{});
    if (computes) std::copy_n(shared.teams.begin(), lanes, host.begin());
    for (size_t g = 0; g < guests.size(); ++g) {
      run.places[guests[g]].teams = {shared.teams[(computes ? lanes : 0) + g]};
    }
  }
}

}  // namespace hearth
