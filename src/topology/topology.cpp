#include "topology/topology.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/error.h"
#include "base/numbers.h"
#include "topology/control_group.h"
#include "topology/hwloc_pci.h"
#include "topology/hwloc_xml.h"
#include "topology/machine_xml.h"

namespace hearth {
namespace {

/// One logical CPU of each core that `belongs`, of at most `n` cores; of all if n <= 0.
template <class Belongs>
std::vector<int> first_cpus(const std::vector<TopologyCore>& cores, int n, Belongs belongs) {
  std::vector<int> cpus;
  for (const TopologyCore& core : cores) {
    if (n > 0 && cpus.size() == static_cast<size_t>(n)) break;
    if (belongs(core)) cpus.push_back(core.cpus.front());
  }
  return cpus;
}

bool contains(const std::vector<int>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

int node_of(const Topology& t, const TopologyCore& core) {
  return core.node >= 0 ? core.node : t.nodes.front().number;
}

// Divides the cores into contiguous runs. Devices belong to no node in particular.
void divide_nodes(Topology& t, const std::string& wanted) {
  const auto count = parse_count(wanted);
  const auto cores = static_cast<int64_t>(t.cores.size());
  if (!count || *count < 1 || *count > cores) {
    throw usage_error("HEARTH_NODES: " + quoted(wanted) + " is not a number from 1 to " +
                      std::to_string(cores) + ", the cores of this machine");
  }
  const std::string model = t.cpu_model;
  t.packages.clear();
  t.nodes.clear();
  t.distances.clear();
  t.has_real_nodes = false;
  std::vector<int> all;
  for (int i = 0; i < *count; ++i) {
    t.packages.push_back({i, model});
    t.nodes.push_back({i, t.total_memory / static_cast<uint64_t>(*count), i});
    all.push_back(i);
  }
  for (int64_t i = 0; i < cores; ++i) {
    TopologyCore& core = t.cores[static_cast<size_t>(i)];
    core.package = core.node = static_cast<int>(i * *count / cores);
  }
  const std::optional<int> package = *count == 1 ? std::optional(0) : std::nullopt;
  for (TopologyRoot& root : t.roots) root = {root.name, package, all};
  for (auto* devices : {&t.accelerators, &t.nics, &t.graphics}) {
    for (PciDevice& device : *devices) {
      device.package = package;
      device.nodes = all;
    }
  }
}

// Virtual machines that lend memory back show nodes that shrink and grow; the system's own total
// stays, and plans must not depend on the moment.
void settle_memory(Topology& t) {
  const auto system_total =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  t.total_memory = std::max(t.total_memory, system_total);
  if (t.nodes.size() == 1) t.nodes.front().memory = t.total_memory;
  const uint64_t limit = control_group_memory_limit();
  if (limit > 0 && (t.total_memory == 0 || limit < t.total_memory)) t.total_memory = limit;
}

// Whether the devices that both topologies know agree.
bool same_devices(const std::vector<PciDevice>& a, const std::vector<PciDevice>& b) {
  if (a.empty() || b.empty()) return true;  // of one they may not have been looked for
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const PciDevice& x, const PciDevice& y) {
                      return x.address == y.address && x.class_code == y.class_code;
                    });
}

}  // namespace

int Topology::cpus() const {
  size_t count = 0;
  for (const TopologyCore& core : cores) count += core.cpus.size();
  return static_cast<int>(count);
}

std::vector<int> Topology::worker_cpus(int n) const {
  return first_cpus(cores, n, [](const TopologyCore&) { return true; });
}

std::vector<int> Topology::worker_cpus_of_node(int number) const {
  return first_cpus(cores, 0, [&](const TopologyCore& c) { return node_of(*this, c) == number; });
}

std::vector<int> Topology::worker_cpus_near_root(std::string_view name) const {
  const TopologyRoot* root = find_root(name);
  if (root == nullptr) return worker_cpus();
  const auto of_nodes = [&](const std::vector<int>& numbers) {
    return first_cpus(cores, 0,
                      [&](const TopologyCore& c) { return contains(numbers, node_of(*this, c)); });
  };
  std::vector<int> cpus = of_nodes(root->nodes);
  if (!cpus.empty() || distances.empty()) return cpus.empty() ? worker_cpus() : cpus;
  // The root complex has memory but no cores: take those of the nearest nodes that have some.
  std::vector<std::pair<double, int>> by_distance;
  for (size_t from = 0; from < nodes.size(); ++from) {
    if (!contains(root->nodes, nodes[from].number)) continue;
    for (size_t to = 0; to < nodes.size(); ++to) {
      if (!worker_cpus_of_node(nodes[to].number).empty()) {
        by_distance.emplace_back(distances[from][to], nodes[to].number);
      }
    }
  }
  if (by_distance.empty()) return worker_cpus();
  const double least = std::min_element(by_distance.begin(), by_distance.end())->first;
  std::vector<int> nearest;
  for (const auto& [distance, number] : by_distance) {
    if (distance <= least) nearest.push_back(number);
  }
  return of_nodes(nearest);
}

const NumaNode* Topology::find_node(int number) const {
  const auto at = std::find_if(nodes.begin(), nodes.end(),
                               [&](const NumaNode& n) { return n.number == number; });
  return at != nodes.end() ? &*at : nullptr;
}

const TopologyRoot* Topology::find_root(std::string_view name) const {
  const auto at = std::find_if(roots.begin(), roots.end(),
                               [&](const TopologyRoot& r) { return r.name == name; });
  return at != roots.end() ? &*at : nullptr;
}

const PciDevice* Topology::find_device(std::string_view pci_address) const {
  const auto address = normal_pci_address(pci_address);
  for (const auto* devices : {&accelerators, &nics, &graphics}) {
    for (const PciDevice& device : *devices) {
      if (device.address == address) return &device;
    }
  }
  return nullptr;
}

void Topology::add_accelerator(std::string_view pci_address, const std::string& name) {
  const auto address = normal_pci_address(pci_address);
  const auto card = std::find_if(graphics.begin(), graphics.end(),
                                 [&](const PciDevice& d) { return d.address == address; });
  if (card == graphics.end()) return;
  card->names.push_back(name);
  const auto later = std::find_if(accelerators.begin(), accelerators.end(),
                                  [&](const PciDevice& d) { return d.address > card->address; });
  accelerators.insert(later, std::move(*card));
  graphics.erase(card);
}

const PciDevice* Topology::accelerator(size_t n) const {
  return n < accelerators.size() ? &accelerators[n] : nullptr;
}

Topology detect_topology(Devices devices) {
  const MachineXml machine = read_machine(devices == Devices::look);
  Topology t;
  try {
    t = parse_topology(machine.text, "machine", &machine.cpus);
  } catch (const Error& error) {  // not the user's file
    throw storage_error(std::string("topology: hwloc describes this machine in a way that is not "
                                    "read: ") +
                        error.what());
  }
  t.has_real_nodes = true;
  settle_memory(t);
  if (const char* wanted = std::getenv("HEARTH_NODES"); wanted != nullptr) divide_nodes(t, wanted);
  return t;
}

bool is_same_machine(const Topology& a, const Topology& b) {
  const auto same_node = [](const NumaNode& x, const NumaNode& y) {
    return x.number == y.number && x.package == y.package;
  };
  const auto same_package = [](const TopologyPackage& x, const TopologyPackage& y) {
    return x.index == y.index && x.model == y.model;
  };
  if (a.cpu_model != b.cpu_model || !same_devices(a.accelerators, b.accelerators) ||
      !std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same_node) ||
      !std::equal(a.packages.begin(), a.packages.end(), b.packages.begin(), b.packages.end(),
                  same_package)) {
    return false;
  }
  // A CPU that both know is on cores that agree as far as both know them.
  for (const TopologyCore& x : a.cores) {
    for (const TopologyCore& y : b.cores) {
      const bool meet =
          std::any_of(x.cpus.begin(), x.cpus.end(), [&](int cpu) { return contains(y.cpus, cpu); });
      if (meet && (x.package != y.package || x.node != y.node)) return false;
    }
  }
  return true;
}

}  // namespace hearth
