// Counts cores of a topology.
#pragma once

#include <algorithm>
#include <cstdint>

#include "topology/topology.h"

namespace hearth {

/// The cores for which `belongs` holds.
inline int64_t cores_that(const Topology& topology, const auto& belongs) {
  return std::count_if(topology.cores.begin(), topology.cores.end(), belongs);
}

}  // namespace hearth
