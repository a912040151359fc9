// Divides the CPUs of a run among its compute streams.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "setup/host_nodes.h"
#include "setup/run_devices.h"

namespace hearth {

/// A compute stream that needs workers, and the CPUs it would rather have: those near its device.
struct TeamRequest {
  std::vector<int> near = {};  // empty: any
};

struct StreamTeams {
  std::vector<StreamTeam> teams;  // one per request
  std::string warning;            // not empty if streams share CPUs
};

/// Gives each stream an even share of the CPUs, so that the workers of all streams together are no
/// more than `workers`. If there are fewer workers than streams, each stream has one worker and
/// they share cores, with a warning. `cpus` are the CPUs to bind to; empty: `workers` unbound workers.
StreamTeams share_workers(const std::vector<TeamRequest>& streams, const std::vector<int>& cpus,
                          int workers);

/// Gives every place of a run the teams of its compute streams. A device that has workers of its own
/// keeps them. The other devices whose memory the host reaches, and the host's streams, share the
/// workers of a NUMA node: the one near their root complex, else in turn. What works for a device
/// gets the cores near it first. Where the host has experts of several devices, each of its nodes has a
/// stream for each. A host that holds nothing of the model has one worker, which rarely runs.
void assign_teams(RunDevices& run, std::span<const HostNode> nodes, const Topology& topology);

}  // namespace hearth
