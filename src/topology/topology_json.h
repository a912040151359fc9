// Topologies as JSON: the object `topology` of `hearth doctor --json`. doctor/diagnosis_json.h writes
// it.
#pragma once

#include <string>

#include "base/json.h"
#include "topology/topology.h"

namespace hearth {

/// Most cores, CPUs and NUMA nodes that a description may have.
inline constexpr int kMostDescribedCores = 4096, kMostDescribedCpus = 16384,
                     kMostDescribedNodes = 1024;

/// "core_list": each core with its package, its NUMA node (null: none) and its CPUs.
Json core_list_json(const Topology& topology);

/// The machine of a description. A description without "core_list" has only numbers of cores: its
/// cores get CPU numbers node by node. Unknown keys are ignored. The total memory is that of the
/// nodes. Input error that starts with `where` and names the field, for anything else.
Topology topology_of(const Json& json, const std::string& where);

}  // namespace hearth
