// Host memory near a device: the NUMA node below whose root complex it sits, and memory of a node.
#pragma once

#include <cstddef>
#include <string>

namespace hearth {

/// The system's number of the NUMA node nearest to a PCI device ("0000:3b:00.0"); -1 where the
/// machine does not say, has no such device, or has a single node.
int numa_node_of_pci(const std::string& bus_id);

/// Asks the system to take the pages of this range, none of them touched yet, from a node; where
/// that is full or not allowed they come from others. False where the system refuses the wish.
bool bind_memory(void* address, size_t bytes, int node);

}  // namespace hearth
