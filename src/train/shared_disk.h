// Whether ranks that are processes reach the run directory of rank 0.
#pragma once

#include <string>
#include <vector>

#include "comm/rank_team.h"

namespace hearth {

/// By rank: whether the path leads to the same directory as at rank 0, and the rank can write there.
/// Rank 0 makes a small file in it, the others look for that and make one of their own; afterwards all
/// are gone. All ranks call it. Raises PeerError.
std::vector<bool> ranks_on_disk(RankTeam& team, const std::string& run_dir);

}  // namespace hearth
