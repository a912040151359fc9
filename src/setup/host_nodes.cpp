#include "setup/host_nodes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error_format.h"
#include "base/log.h"

namespace hearth {

namespace {

/// The numbers of `host:N` items, in the order of the list; empty: all nodes.
std::vector<int> listed_nodes(std::span<const DeviceItem> items) {
  std::vector<int> numbers;
  for (const DeviceItem& item : items) {
    if (item.kind == DeviceKind::host && item.number != kAllNodes) numbers.push_back(item.number);
  }
  return numbers;
}

/// Nodes with cores, by number.
std::vector<int> nodes_with_cores(const Topology& topology) {
  std::vector<int> numbers;
  for (const NumaNode& node : topology.nodes) {
    if (!topology.worker_cpus_of_node(node.number).empty()) numbers.push_back(node.number);
  }
  return numbers;
}

std::vector<int> both(const std::vector<int>& some, const std::vector<int>& others) {
  std::vector<int> result;
  for (const int cpu : some) {
    if (std::find(others.begin(), others.end(), cpu) != others.end()) result.push_back(cpu);
  }
  return result;
}

/// "node 0", "nodes 0, 1 and 2".
std::string nodes_text(const Topology& topology) {
  const size_t count = topology.nodes.size();
  std::string text = count == 1 ? "node" : "nodes";
  for (size_t i = 0; i < count; ++i) {
    text += i == 0 ? " " : i + 1 < count ? ", " : " and ";
    text += std::to_string(topology.nodes[i].number);
  }
  return text;
}

/// The cores that an item `host:N` asks for; 0: all that are left.
int asked_of_node(std::span<const DeviceItem> items, int number) {
  for (const DeviceItem& item : items) {
    if (item.kind == DeviceKind::host && item.number == number) return item.keys.cores;
  }
  return 0;
}

/// Workers that a node asks for by name hold. If it has fewer CPUs, they are unbound.
void take_asked(HostNode& node, int asked) {
  if (asked == 0) return;
  const bool fits = asked <= static_cast<int>(node.cpus.size());
  if (!fits && !node.cpus.empty()) {
    log_warning(
        fmt::format("--devices host:{} asks for {} of {}: its workers wait for each other, and are "
                    "bound to no core",
                    node.number, counted(asked, "core"), node.cpus.size()));
  }
  node.cpus.resize(fits ? static_cast<size_t>(asked) : 0);
  node.workers = asked;
}

}  // namespace

std::vector<int> cpus_of_listed_nodes(std::span<const DeviceItem> items, const Topology& topology,
                                      const std::vector<int>& cpus) {
  const std::vector<int> listed = listed_nodes(items);
  if (listed.empty()) return cpus;
  std::vector<int> result;
  for (const int number : listed) {
    if (topology.find_node(number) == nullptr) {
      throw usage_error("--devices host:{}: no such NUMA node; this machine has {}", number,
                        nodes_text(topology));
    }
    const std::vector<int> near = topology.worker_cpus_of_node(number);
    if (near.empty()) {
      throw usage_error(
          "--devices host:{}: no core of this process is near that node; leave it out", number);
    }
    const std::vector<int> own = both(near, cpus);
    result.insert(result.end(), own.begin(), own.end());
  }
  return result;
}

uint64_t memory_of_listed_nodes(std::span<const DeviceItem> items, const Topology& topology,
                                uint64_t all) {
  uint64_t sum = 0;
  for (const int number : listed_nodes(items)) {
    const NumaNode* node = topology.find_node(number);
    if (node == nullptr || node->memory == 0) return all;
    sum += node->memory;
  }
  return sum == 0 ? all : std::min(all, sum);
}

std::vector<HostNode> host_nodes(std::span<const DeviceItem> items, const Topology& topology,
                                 const std::vector<int>& cpus, int workers) {
  const std::vector<int> listed = listed_nodes(items);
  const std::vector<int> numbers = listed.empty() ? nodes_with_cores(topology) : listed;
  std::vector<HostNode> nodes;
  const auto count = static_cast<int>(numbers.size());
  for (int i = 0; i < count; ++i) {
    const int number = numbers[static_cast<size_t>(i)];
    const NumaNode* found = topology.find_node(number);
    HostNode node{
        number,
        found != nullptr ? found->memory : 0,
        found != nullptr ? found->package : std::nullopt,
        topology.has_real_nodes && topology.nodes.size() > 1 && (count > 1 || !listed.empty()),
        {},
        0};
    if (cpus.empty()) {
      node.workers = (workers + count - 1 - i) / count;
    } else {
      node.cpus = both(cpus, topology.worker_cpus_of_node(node.number));
      node.workers = static_cast<int>(node.cpus.size());
    }
    if (node.workers > 0) take_asked(node, asked_of_node(items, number));
    if (node.workers > 0) {
      nodes.push_back(std::move(node));
    } else if (!listed.empty()) {
      throw usage_error(
          "--devices host:{}: no worker is left for that node; use more workers, or "
          "fewer cores of virtual devices",
          node.number);
    }
  }
  if (nodes.empty()) nodes.push_back({0, 0, std::nullopt, false, cpus, workers});
  return nodes;
}

}  // namespace hearth
