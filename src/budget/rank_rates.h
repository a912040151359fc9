// What predictions need to know of several ranks: the speed of their links, and what they share.
#pragma once

#include <string>

#include "base/json.h"
#include "budget/placed_model.h"

namespace hearth {

/// Of a run whose places have their rates. Links are, in this order: those of the options, of thread
/// ranks; those that the table of the host has for every pair of ranks (`hearth profile --cluster`);
/// of threads copies in memory, else assumed rates. Measures how ranks on the same cores slow each
/// other down, unless places are paced or nothing may be measured.
RankCosts rank_costs(const PlacedModel& model, const PlanRequest& request, const RunRates& rates);

/// For people: "links between 4 ranks: 125 MB/s, 50 us (--rank-links)". Empty: one rank.
std::string rank_links_text(const RankCosts& ranks);
/// {"basis", "bytes_per_s": [least, most] or null (no limit), "latency_s", "products", "sweeps"}
Json rank_links_json(const RankCosts& ranks);

}  // namespace hearth
