// Latency between NUMA nodes, from hwloc's XML.
#pragma once

#include <vector>

#include "topology/hwloc_objects.h"
#include "topology/topology.h"

namespace hearth {

/// The first complete matrix of latencies between the nodes, in their order; empty if the document
/// has none. Input error for a matrix whose numbers are not as many as it says.
std::vector<std::vector<double>> read_node_distances(const HwlocObjects& objects,
                                                     const std::vector<NumaNode>& nodes);

}  // namespace hearth
