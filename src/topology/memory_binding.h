// Host memory near a device: finds a device's NUMA node, and binds memory to a node.
#pragma once

#include <cstddef>
#include <string>

namespace hearth {

/// The system's number of the NUMA node nearest to a PCI device ("0000:3b:00.0"); -1 if unknown, if
/// there is no such device, or if the machine has a single node.
int numa_node_of_pci(const std::string& bus_id);

/// Asks the system to take the pages of this range from a node; no page may have been touched yet.
/// If the node is full or not allowed, pages come from other nodes. Returns false if the system
/// refuses the request.
bool bind_memory(void* address, size_t bytes, int node);

}  // namespace hearth
