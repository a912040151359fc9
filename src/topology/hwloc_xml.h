// Reads hwloc's XML, 1.x and 2.x. By its own reader: hwloc's trusts the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "topology/topology.h"

namespace hearth {

inline constexpr uint64_t kMaxTopologyBytes = uint64_t{64} << 20;

/// The machine of a regular file of at most 64 MiB. Input error, one line with the file's name, for
/// anything that hwloc does not read.
Topology read_topology(const std::string& path);

/// The same for text; messages start with `source`, which the topology keeps. `usable`: numbers of
/// the CPUs that may be used, as far as the text allows them; null: all.
Topology parse_topology(std::string_view text, const std::string& source,
                        const std::vector<int>* usable = nullptr);

}  // namespace hearth
