#include "topology/hwloc_xml.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/input_file.h"
#include "base/numbers.h"
#include "topology/hwloc_distances.h"
#include "topology/hwloc_objects.h"
#include "topology/hwloc_pci.h"

namespace hearth {
namespace {

constexpr size_t kMostNodes = 4096;

/// A NUMA node with the CPUs around it.
struct NodeAround {
  NumaNode node;
  NumberSet cpus;
  int64_t usable = 0;  // of its CPUs
};

/// Fills a topology from the objects of a file.
class TopologyReader {
 public:
  TopologyReader(const HwlocObjects& objects, const std::vector<int>* usable)
      : objects_(objects), usable_(usable) {}

  Topology read() {
    find_packages();
    find_cpus();
    find_nodes();
    find_cores();
    keep_packages();
    const PackageOf package_of = [this](int object) { return package_around(object); };
    read_pci(objects_, package_of, result_);
    result_.distances = read_node_distances(objects_, result_.nodes);
    return std::move(result_);
  }

 private:
  const HwlocObject& at(int index) const { return objects_.all()[static_cast<size_t>(index)]; }
  int count() const { return static_cast<int>(objects_.all().size()); }
  const HwlocObject& machine() const { return at(0); }

  void find_packages() {
    for (int i = 0; i < count(); ++i) {
      if (at(i).kind != HwlocKind::package) continue;
      package_index_.emplace(i, static_cast<int>(result_.packages.size()));
      std::string model = objects_.info(at(i), "CPUModel");
      if (result_.cpu_model.empty()) result_.cpu_model = model;
      result_.packages.push_back({static_cast<int>(result_.packages.size()), std::move(model)});
    }
    if (result_.cpu_model.empty()) result_.cpu_model = objects_.info(machine(), "CPUModel");
    if (result_.packages.empty()) result_.packages.push_back({0, result_.cpu_model});
  }

  /// The index of the one package that an object belongs to: the package above it, or the only one
  /// below the nearest object that has any.
  std::optional<int> package_around(int object) const {
    for (int i = object; i >= 0; i = at(i).parent) {
      const auto first = package_index_.lower_bound(i);
      const auto last = package_index_.lower_bound(at(i).end);
      if (first == last) continue;
      if (std::next(first) == last) return first->second;
      return std::nullopt;
    }
    return result_.packages.size() == 1 ? std::optional(0) : std::nullopt;
  }

  bool is_usable(int cpu) const {
    return usable_ == nullptr || std::find(usable_->begin(), usable_->end(), cpu) != usable_->end();
  }

  void find_cpus() {
    std::vector<NumberSet> limits;
    for (const char* name : {"cpuset", "online_cpuset", "allowed_cpuset"}) {
      if (auto set = objects_.set(machine(), name)) limits.push_back(std::move(*set));
    }
    std::set<int> numbers;
    for (int i = 0; i < count(); ++i) {
      if (at(i).kind != HwlocKind::pu) continue;
      const int cpu = at(i).number;
      if (!numbers.insert(cpu).second) {
        objects_.refuse(objects_.element(at(i)), "CPU " + std::to_string(cpu) + " twice");
      }
      const auto allows = [&](const NumberSet& set) { return set.contains(cpu); };
      if (std::all_of(limits.begin(), limits.end(), allows) && is_usable(cpu)) cpus_.push_back(i);
    }
    if (cpus_.empty()) {
      objects_.refuse(objects_.element(machine()), "the machine has no CPU that may be used");
    }
  }

  void find_nodes() {
    const NumberSet allowed = objects_.set(machine(), "allowed_nodeset").value_or(NumberSet::all());
    std::set<int> numbers;
    for (int i = 0; i < count(); ++i) {
      const HwlocObject& object = at(i);
      if (object.kind != HwlocKind::node) continue;
      if (!numbers.insert(object.number).second) {
        objects_.refuse(objects_.element(object),
                        "NUMA node " + std::to_string(object.number) + " twice");
      }
      if (numbers.size() > kMostNodes) {
        objects_.refuse(objects_.element(object),
                        "more than " + std::to_string(kMostNodes) + " NUMA nodes");
      }
      if (!allowed.contains(object.number)) continue;
      NodeAround node;
      node.node.number = object.number;
      node.node.memory = objects_.number(object, "local_memory", kMostMemory).value_or(0);
      node.node.package = package_around(i);
      node.cpus = *objects_.set(at(around(i)), "cpuset");
      add_node(std::move(node));
    }
    if (numbers.empty() && objects_.version_1()) {
      NodeAround node;
      node.node.memory = objects_.number(machine(), "local_memory", kMostMemory).value_or(0);
      node.node.package = package_around(0);
      node.cpus = NumberSet::all();
      add_node(std::move(node));
    }
    if (nodes_.empty()) {
      objects_.refuse(objects_.element(machine()), "the machine has no NUMA node that may be used");
    }
    std::sort(nodes_.begin(), nodes_.end(), [](const NodeAround& a, const NodeAround& b) {
      return a.node.number < b.node.number;
    });
    for (const NodeAround& node : nodes_) {
      result_.nodes.push_back(node.node);
      result_.total_memory += node.node.memory;
    }
  }

  // The object whose CPUs are around a node. In version 2 the object that the node hangs below:
  // hwloc's reader, too, does not look at the node's own.
  int around(int node) const {
    if (objects_.version_1()) return node;
    while (at(node).kind == HwlocKind::node || at(node).kind == HwlocKind::memory_cache) {
      node = at(node).parent;
    }
    return node;
  }

  void add_node(NodeAround node) {
    node.usable = std::count_if(cpus_.begin(), cpus_.end(),
                                [&](int pu) { return node.cpus.contains(at(pu).number); });
    nodes_.push_back(std::move(node));
  }

  // The node with the fewest CPUs around it, of equals the lowest number.
  int node_of(int cpu) const {
    const NodeAround* nearest = nullptr;
    for (const NodeAround& node : nodes_) {
      if (!node.cpus.contains(cpu)) continue;
      if (nearest == nullptr || node.usable < nearest->usable) nearest = &node;
    }
    return nearest != nullptr ? nearest->node.number : -1;
  }

  // A CPU outside of a core is a core of its own: virtual machines may show no cores.
  void find_cores() {
    std::map<int, TopologyCore> cores;  // by object
    for (const int pu : cpus_) {
      int core = pu, package = -1;
      for (int i = pu; i >= 0 && package < 0; i = at(i).parent) {
        if (at(i).kind == HwlocKind::core) core = i;
        if (const auto found = package_index_.find(i); found != package_index_.end()) {
          package = found->second;
        }
      }
      TopologyCore& of = cores[core];
      of.package = std::max(package, 0);
      of.cpus.push_back(at(pu).number);
    }
    for (auto& [object, core] : cores) {
      std::sort(core.cpus.begin(), core.cpus.end());
      core.node = node_of(core.cpus.front());
      result_.cores.push_back(std::move(core));
    }
    std::stable_sort(
        result_.cores.begin(), result_.cores.end(),
        [](const TopologyCore& a, const TopologyCore& b) { return a.package < b.package; });
  }

  void keep_packages() {
    std::erase_if(result_.packages, [this](const TopologyPackage& package) {
      const auto has_core = [&](const TopologyCore& c) { return c.package == package.index; };
      const auto has_node = [&](const NumaNode& n) { return n.package == package.index; };
      return std::none_of(result_.cores.begin(), result_.cores.end(), has_core) &&
             std::none_of(result_.nodes.begin(), result_.nodes.end(), has_node);
    });
  }

  const HwlocObjects& objects_;
  const std::vector<int>* usable_;
  std::map<int, int> package_index_;  // by object
  std::vector<int> cpus_;             // usable: objects
  std::vector<NodeAround> nodes_;
  Topology result_;
};

}  // namespace

Topology parse_topology(std::string_view text, const std::string& source,
                        const std::vector<int>* usable) {
  Topology topology = TopologyReader(HwlocObjects(text, source), usable).read();
  topology.source = source;
  topology.has_real_nodes = false;
  return topology;
}

Topology read_topology(const std::string& path) {
  return parse_topology(read_file(path, kMaxTopologyBytes), path);
}

}  // namespace hearth
