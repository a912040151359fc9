// The machine as this process may use it: packages, NUMA nodes, cores. Found with hwloc (2.9 or
// newer), narrowed to the CPU affinity and the control group of the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

/// A physical core and those of its logical CPUs that this process may run on (never none).
struct TopologyCore {
  int package = 0;        // index of the package, from 0
  int node = 0;           // the system's number of the nearest NUMA node
  std::vector<int> cpus;  // logical CPU numbers of the system, rising
};

struct NumaNode {
  int number = 0;       // of the system
  uint64_t memory = 0;  // bytes; 0 where the system does not tell
};

struct Topology {
  std::string cpu_model;  // as the processor calls itself; empty where unknown
  int packages = 0;
  std::vector<NumaNode> nodes;      // at least one
  std::vector<TopologyCore> cores;  // at least one, package by package
  uint64_t total_memory = 0;        // bytes: RAM, or less where the control group allows less

  /// One logical CPU a physical core for the first `n` cores, to bind workers to; all if n <= 0.
  std::vector<int> worker_cpus(int n = 0) const;
};

/// Asks the system. A storage error (exit 4) when it cannot be asked.
Topology detect_topology();

}  // namespace hearth
