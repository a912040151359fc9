// Root complexes, accelerators, NICs and graphics cards among the objects of hwloc's XML.
#pragma once

#include <functional>
#include <optional>

#include "topology/hwloc_objects.h"
#include "topology/topology.h"

namespace hearth {

/// The index of the package that an object belongs to; nothing for several.
using PackageOf = std::function<std::optional<int>(int object)>;

/// Adds them to a topology whose nodes are known. A PCI device without an address, and a host
/// bridge without buses, count as if they were not there.
void read_pci(const HwlocObjects& objects, const PackageOf& package_of, Topology& topology);

/// "0000:3b:00.0" from any common way to write it; nullopt if it is no PCI address.
std::optional<std::string> normal_pci_address(std::string_view text);

}  // namespace hearth
