// The part of a machine that this process may use: packages, NUMA nodes, cores, and the root
// complexes with accelerators and NICs below them. Of this machine (found with hwloc), or of another
// one (hwloc_xml.h). Plain data: nothing here needs hwloc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// Bytes of a node, or of a device's own, that descriptions may have: 1 PiB.
inline constexpr uint64_t kMostMemory = uint64_t{1} << 50;

/// A physical core with the logical CPUs that this process may use, at least one.
struct TopologyCore {
  int package = 0;        // TopologyPackage::index
  int node = -1;          // the system's number of its NUMA node; -1 if no node is around it
  std::vector<int> cpus;  // the system's logical CPU numbers, ascending
};

/// A package with a usable core or a NUMA node.
struct TopologyPackage {
  int index = 0;      // among all packages of the machine, from 0
  std::string model;  // the processor's own name; empty if unknown
};

struct NumaNode {
  int number = 0;              // the system's number
  uint64_t memory = 0;         // bytes; 0 if unknown
  std::optional<int> package;  // nothing if the node belongs to several packages
};

/// A host bridge. Devices below it share its bandwidth.
struct TopologyRoot {
  std::string name;            // PCI domain and first bus in hex: "0000-2b"
  std::optional<int> package;  // nothing if it belongs to several packages
  std::vector<int> nodes;      // numbers of the NUMA nodes near it, ascending; all if of no package
};

/// An accelerator, a NIC or a graphics card.
struct PciDevice {
  std::string address;             // "0000:3b:00.0"
  std::string class_code;          // four hex digits
  std::string vendor;              // a name, else four hex digits; empty if unknown
  std::string root;                // TopologyRoot::name; empty if no host bridge is above it
  std::optional<int> package;      // of its root complex
  std::vector<int> nodes;          // of its root complex
  double link_bytes_per_s = 0;     // 0: unknown
  uint64_t memory = 0;             // bytes of its own; 0: unknown
  std::vector<std::string> names;  // of the operating system and libraries: "cuda0", "eth0"
};

struct Topology {
  std::string source = "machine";         // or the file
  std::string cpu_model;                  // of the first package that names one
  std::vector<TopologyPackage> packages;  // at least one
  std::vector<NumaNode> nodes;            // at least one, by number
  std::vector<TopologyCore> cores;        // at least one, package by package
  std::vector<TopologyRoot> roots;        // by name
  std::vector<PciDevice> accelerators;    // by address
  std::vector<PciDevice> nics;            // by address
  // Graphics cards (class 03xx) for which no compute interface was seen, by address.
  std::vector<PciDevice> graphics;
  // Latency between nodes, in the order of `nodes`, in units of the machine; empty if unknown.
  std::vector<std::vector<double>> distances;
  uint64_t total_memory = 0;  // bytes of RAM, or the control group's limit if lower
  // Whether nodes are those of the system, so that memory can be bound to them. False for a file
  // and for HEARTH_NODES.
  bool has_real_nodes = true;

  int cpus() const;  // logical CPUs

  /// CPUs to bind workers to: one logical CPU for each of the first `n` cores; all cores if n <= 0.
  std::vector<int> worker_cpus(int n = 0) const;
  /// The same for the cores of a node. Cores with no node around them count as the first node's.
  std::vector<int> worker_cpus_of_node(int number) const;
  /// The same for the cores nearest to a root complex: those of its nodes, else of the nodes at the
  /// least distance that have cores, else all.
  std::vector<int> worker_cpus_near_root(std::string_view name) const;

  const NumaNode* find_node(int number) const;
  const TopologyRoot* find_root(std::string_view name) const;
  /// The accelerator, NIC or graphics card at a PCI address, however it is written
  /// ("0000:3B:00.0", "3b:00.0", "00000000:3B:00.0"); null if there is none.
  const PciDevice* find_device(std::string_view pci_address) const;
  /// Makes the graphics card at an address an accelerator, because a compute interface has found
  /// it, which calls it `name`. No effect on other devices.
  void add_accelerator(std::string_view pci_address, const std::string& name);
  /// The N-th accelerator by PCI address, from 0, in whose place a virtual device stands; null if
  /// there are fewer.
  const PciDevice* accelerator(size_t n) const;
};

enum class Devices : uint8_t { skip, look };

/// Asks the system: what the affinity mask and the control group of this process allow. Looks for
/// PCI devices only if asked to, which can take a second. The environment variable HEARTH_NODES=N
/// (for tests) divides the cores into N nodes of one package each; usage error if it is no number
/// from 1 to the number of cores. Storage error (exit 4) if the system does not answer.
Topology detect_topology(Devices devices = Devices::skip);

/// Whether two topologies describe one machine: the same processor, nodes, packages and devices as
/// far as both know them, and of the CPUs that both may use the same cores.
bool is_same_machine(const Topology& a, const Topology& b);

}  // namespace hearth
