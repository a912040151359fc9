// The part of the machine that this process may use: packages, NUMA nodes, cores. Found with hwloc
// (2.9 or newer), restricted to the CPU affinity and the control group of the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

/// A physical core with the logical CPUs that this process may use, at least one.
struct TopologyCore {
  int package = 0;        // index of the package, from 0
  int node = 0;           // the system's number of the nearest NUMA node
  std::vector<int> cpus;  // the system's logical CPU numbers, ascending
};

struct NumaNode {
  int number = 0;       // the system's number
  uint64_t memory = 0;  // bytes; 0 if unknown
};

struct Topology {
  std::string cpu_model;  // the processor's own name; empty if unknown
  int packages = 0;
  std::vector<NumaNode> nodes;      // at least one
  std::vector<TopologyCore> cores;  // at least one, package by package
  uint64_t total_memory = 0;        // bytes of RAM, or the control group's limit if lower

  /// CPUs to bind workers to: one logical CPU for each of the first `n` cores; all cores if n <= 0.
  std::vector<int> worker_cpus(int n = 0) const;
};

/// Asks the system. Storage error (exit 4) if that fails.
Topology detect_topology();

}  // namespace hearth
