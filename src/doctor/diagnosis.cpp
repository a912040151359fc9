#include "doctor/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/size_text.h"
#include "doctor/rate_unit.h"

namespace hearth {
namespace {

constexpr double kSlow = 2.0 / 3;  // of nominal
constexpr uint64_t kLeastLocked = uint64_t{1}
                                  << 30;  // bytes, with a device whose buffers are pinned

double gigabytes(double bytes_per_s) { return bytes_per_s / 1e9; }

void warn_of_devices(const std::vector<PciDevice>& devices, const char* kind,
                     std::vector<Warning>& warnings) {
  double fastest = 0;
  for (const PciDevice& d : devices) fastest = std::max(fastest, d.link_bytes_per_s);
  for (const PciDevice& d : devices) {
    if (d.link_bytes_per_s <= 0 || 2 * d.link_bytes_per_s >= fastest) continue;
    warnings.push_back(
        {d.address, fmt::format("its link has {:.1f} GB/s, less than half of the "
                                "fastest {} ({:.1f} GB/s); check slot and riser",
                                gigabytes(d.link_bytes_per_s), kind, gigabytes(fastest))});
  }
}

void warn_of_lanes(const MachineFindings& machine, std::vector<Warning>& warnings) {
  for (const auto& [address, link] : machine.pci_links) {
    if (link.lanes >= link.most_lanes) continue;
    warnings.push_back({address, fmt::format("its link has {} of {} lanes; check slot and riser",
                                             link.lanes, link.most_lanes)});
  }
}

void warn_of_links(const std::vector<LinkMeasurement>& links, std::vector<Warning>& warnings) {
  for (const LinkMeasurement& link : links) {
    if (link.too_slow) {
      warnings.push_back({link.link, fmt::format("not measured{}: a copy would take longer than "
                                                 "the time that the command has left",
                                                 link.alone > 0 ? " together" : "")});
    }
    if (link.nominal <= 0 || link.alone <= 0 || link.alone >= kSlow * link.nominal) continue;
    const RateUnit unit = unit_of(link.nominal);
    warnings.push_back({link.link, fmt::format("reaches {} of {} {}", in_unit(link.alone, unit),
                                               in_unit(link.nominal, unit), unit.name)});
  }
}

void warn_of_nodes(const Topology& t, std::vector<Warning>& warnings) {
  const auto has_cores = [&](const NumaNode& node) {
    return std::any_of(t.cores.begin(), t.cores.end(),
                       [&](const TopologyCore& core) { return core.node == node.number; });
  };
  uint64_t most = 0;
  for (const NumaNode& node : t.nodes) {
    if (has_cores(node)) most = std::max(most, node.memory);
  }
  for (const NumaNode& node : t.nodes) {
    if (most == 0 || !has_cores(node) || node.memory * 3 >= most * 2) continue;
    const std::string place = "host:" + std::to_string(node.number);
    if (node.memory == 0) {
      warnings.push_back({place, "has cores and no memory: they compute with another node's"});
    } else {
      warnings.push_back({place, fmt::format("has {}, less than two thirds of the largest node "
                                             "({}); is a memory module missing?",
                                             size_text(node.memory), size_text(most))});
    }
  }
}

void warn_of_limits(const Topology& t, const MachineLimits& limits,
                    std::vector<Warning>& warnings) {
  if (!t.accelerators.empty() && limits.locked_memory && *limits.locked_memory < kLeastLocked) {
    warnings.push_back(
        {"locked_memory", fmt::format("a process may lock {}; pinned buffers can need more: "
                                      "raise 'ulimit -l'",
                                      size_text(*limits.locked_memory))});
  }
  if (limits.transparent_huge_pages == "never") {
    warnings.push_back({"transparent_huge_pages",
                        "are off, so large arrays cost more page table walks; set "
                        "/sys/kernel/mm/transparent_hugepage/enabled to madvise or always"});
  }
}

}  // namespace

Diagnosis diagnose(Topology topology, std::optional<MachineFindings> machine) {
  Diagnosis d{std::move(topology), std::move(machine), {}};
  if (d.machine) d.warnings = d.machine->warnings;
  warn_of_devices(d.topology.accelerators, "accelerator", d.warnings);
  warn_of_devices(d.topology.nics, "NIC", d.warnings);
  if (d.machine) {
    warn_of_lanes(*d.machine, d.warnings);
    warn_of_links(d.machine->links, d.warnings);
  }
  warn_of_nodes(d.topology, d.warnings);
  if (d.machine) warn_of_limits(d.topology, d.machine->limits, d.warnings);
  return d;
}

}  // namespace hearth
