// Which NUMA nodes of the host are places of a run, and the CPUs of each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device_list.h"
#include "topology/topology.h"

namespace hearth {

/// A NUMA node that computes. The first of a run is its place `host`.
struct HostNode {
  int number = 0;       // the system's
  uint64_t memory = 0;  // bytes; 0: unknown
  std::optional<int> package = {};
  bool bind = false;      // whether memory can be bound to it
  std::vector<int> cpus;  // one per core, as many as the host has left; empty: unbound
  int workers = 1;        // of all its compute streams together
};

/// The CPUs that the nodes of a list of --devices have: of `host:N` items, those nodes alone; else
/// of all. Usage error if the machine has no such node, or if no core is near it.
std::vector<int> cpus_of_listed_nodes(std::span<const DeviceItem> items, const Topology& topology,
                                      const std::vector<int>& cpus);

/// The memory of the `host:N` items of a list together. `all` if there are none, if `all` is less,
/// or if the memory of a node is unknown.
uint64_t memory_of_listed_nodes(std::span<const DeviceItem> items, const Topology& topology,
                                uint64_t all);

/// The nodes that compute, with what the host keeps beside virtual devices: its CPUs, or unbound
/// workers; of `host:N` items with `cores`, as many of the node's. A node that is left no worker computes
/// nothing. Never empty. Usage error if that is a node of the list.
std::vector<HostNode> host_nodes(std::span<const DeviceItem> items, const Topology& topology,
                                 const std::vector<int>& cpus, int workers);

}  // namespace hearth
