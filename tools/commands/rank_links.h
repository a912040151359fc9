// Links between ranks, for `hearth profile` and `hearth doctor`.
#pragma once

#include <optional>
#include <vector>

#include "commands/commands.h"
#include "plan/cost_table.h"

namespace hearth {

/// What a process of a launch does, or the links that it measured together with the others.
struct LinksOfRanks {
  std::vector<CostLink> links;
  std::optional<ExitCode> ended;  // what this process returns now
};

/// In a launch all processes measure, and rank 0 goes on. Else the thread ranks of the options do,
/// with the links of the options; one rank has none. Takes about `seconds`; 0: measures nothing.
LinksOfRanks measure_links_of_ranks(const Options& options, LaunchedRanks* launched,
                                    double seconds);

}  // namespace hearth
