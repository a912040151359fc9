// Divides the CPUs of a run among its compute streams.
#pragma once

#include <string>
#include <vector>

#include "runtime/stream_team.h"

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
/// more than `workers`. If there are fewer workers than streams, all streams share them, with a
/// warning. `cpus` are the CPUs to bind to; empty: `workers` unbound workers.
StreamTeams share_workers(const std::vector<TeamRequest>& streams, const std::vector<int>& cpus,
                          int workers);

}  // namespace hearth
