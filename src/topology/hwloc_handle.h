// An owning handle of hwloc's topology, for this room.
#pragma once

#include <hwloc.h>

#include <memory>

namespace hearth {

struct HwlocDeleter {
  void operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }
};
using HwlocHandle = std::unique_ptr<hwloc_topology, HwlocDeleter>;

}  // namespace hearth
