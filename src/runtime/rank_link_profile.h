// The links between the ranks of a run, as cost tables have them.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/world.h"
#include "device/link_rate.h"
#include "plan/cost_table.h"

namespace hearth {

/// Every ordered pair: "0/host->1/host". All ranks of the world call it; takes about `seconds`
/// (comm/pair_rates.h). Raises PeerError.
std::vector<CostLink> measure_rank_links(World& world, double seconds);

/// The same of so many ranks that are threads of this process, with such links. Blocks.
std::vector<CostLink> measure_thread_links(int32_t ranks, LinkRate links, double seconds);

}  // namespace hearth
