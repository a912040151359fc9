// Texts of any length that ranks send each other.
#pragma once

#include <string>
#include <vector>

#include "comm/rank_team.h"

namespace hearth {

/// The texts of all ranks, by rank. All ranks call it. Raises PeerError, as the others.
std::vector<std::string> gather_texts(RankTeam& team, const std::string& own);
/// Rank 0 tells all others; they hear it. Both at the same point.
void tell(RankTeam& team, const std::string& text);
std::string hear(RankTeam& team);

}  // namespace hearth
