#include "doctor/diagnosis_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "base/size_text.h"
#include "doctor/cores_that.h"

namespace hearth {
namespace {

// Text from a file or the system on one line.
std::string plain(const std::string& text) {
  const std::string in_quotes = quoted(text);
  return in_quotes.substr(1, in_quotes.size() - 2);
}

std::string rate_text(double bytes_per_s) {
  if (bytes_per_s <= 0) return "?";
  const double gb = bytes_per_s / 1e9;
  if (gb >= 1) return fmt::format("{:.1f}", gb);
  return gb >= 0.0995 ? fmt::format("{:.3f}", gb) : fmt::format("{:.3g}", gb);
}

std::string row(const std::string& head, const std::string& text) {
  return fmt::format("{:<14}{}\n", head, text);
}

std::string package_of(const std::optional<int>& package) {
  return package ? fmt::format("package {}", *package) : "several packages";
}

std::string nodes_of(const std::vector<int>& nodes) {
  if (nodes.empty()) return "no node that may be used";
  std::string text = nodes.size() == 1 ? "node" : "nodes";
  for (const int number : nodes) text += fmt::format(" {}", number);
  return text;
}

using PciLinks = std::vector<std::pair<std::string, PciLink>>;

// "31.5 GB/s (x16, PCIe 4)"; the machine alone knows lanes and generation, a file does not.
std::string link_text(const PciDevice& device, const PciLinks& links) {
  std::string text =
      device.link_bytes_per_s > 0 ? rate_text(device.link_bytes_per_s) + " GB/s" : "unknown";
  for (const auto& [address, link] : links) {
    if (address != device.address) continue;
    text += fmt::format(" (x{}", link.lanes);
    if (link.lanes < link.most_lanes) text += fmt::format(" of x{}", link.most_lanes);
    if (link.generation() > 0) text += fmt::format(", PCIe {}", link.generation());
    text += ")";
  }
  return text;
}

std::string device_rows(const char* headline, const std::vector<PciDevice>& devices,
                        const PciLinks& links) {
  std::string text = fmt::format("\n{}\n", headline);
  if (devices.empty()) return text + "  none\n";
  for (const PciDevice& d : devices) {
    text +=
        fmt::format("  {:<14}class {}  root complex {:<9} {}  link {}", d.address, d.class_code,
                    d.root.empty() ? "unknown" : d.root, nodes_of(d.nodes), link_text(d, links));
    for (const std::string& name : d.names) text += "  " + plain(name);
    if (!d.vendor.empty()) text += "  vendor " + plain(d.vendor);
    text += "\n";
  }
  return text;
}

// The machine's own table of how far each node is from each.
std::string distance_rows(const Topology& t) {
  if (t.nodes.size() < 2 || t.distances.size() != t.nodes.size()) return {};
  std::string text = fmt::format("\n{:<14}", "distances");
  for (const NumaNode& n : t.nodes) text += fmt::format("{:>6}", n.number);
  text += "\n";
  for (size_t from = 0; from < t.nodes.size(); ++from) {
    text += fmt::format("  {:<12}", t.nodes[from].number);
    for (const double distance : t.distances[from]) text += fmt::format("{:>6.0f}", distance);
    text += "\n";
  }
  return text;
}

std::string topology_rows(const Topology& t, const PciLinks& links) {
  std::string text = "packages\n";
  for (const TopologyPackage& p : t.packages) {
    const auto cores = cores_that(t, [&](const TopologyCore& c) { return c.package == p.index; });
    text += fmt::format("  {:<12}{}  {}\n", p.index, counted(cores, "core"),
                        p.model.empty() ? "unknown processor" : plain(p.model));
  }
  text += "\nNUMA nodes\n";
  for (const NumaNode& n : t.nodes) {
    const auto cores = cores_that(t, [&](const TopologyCore& c) { return c.node == n.number; });
    text += fmt::format("  {:<12}{}  {}  {}\n", n.number, size_text(n.memory),
                        counted(cores, "core"), package_of(n.package));
  }
  text += distance_rows(t) + "\nroot complexes\n";
  if (t.roots.empty()) text += "  none found\n";
  for (const TopologyRoot& r : t.roots) {
    text += fmt::format("  {:<12}{}  {}\n", r.name, package_of(r.package), nodes_of(r.nodes));
  }
  return text + device_rows("accelerators", t.accelerators, links) +
         device_rows("NICs", t.nics, links);
}

std::string link_rows(const std::vector<LinkMeasurement>& links) {
  std::string text =
      fmt::format("\n{:<24}{:>10}{:>10}{:>10}\n", "links, in GB/s", "nominal", "alone", "together");
  if (links.empty()) text += "  none measured\n";
  for (const LinkMeasurement& l : links) {
    text += fmt::format("  {:<22}{:>10}{:>10}{:>10}\n", l.link, rate_text(l.nominal),
                        rate_text(l.alone), rate_text(l.together));
  }
  return text;
}

std::string bytes_or_no_limit(const std::optional<uint64_t>& bytes) {
  return bytes ? size_text(*bytes) : "no limit";
}

std::string limit_rows(const MachineLimits& limits) {
  std::string text = "\nlimits\n";
  text += "  " + row("locked memory", "  " + bytes_or_no_limit(limits.locked_memory));
  text += "  " + row("address space", "  " + bytes_or_no_limit(limits.address_space));
  text += "  " + row("open files", "  " + (limits.open_files ? std::to_string(*limits.open_files)
                                                             : std::string("no limit")));
  for (const HugePages& p : limits.huge_pages) {
    text += "  " + row("huge pages",
                       fmt::format("  {} of {} free, of {} KiB", p.free, p.total, p.bytes / 1024));
  }
  text += "  " + row("transparent", "  " +
                                        (limits.transparent_huge_pages.empty()
                                             ? std::string("unknown")
                                             : plain(limits.transparent_huge_pages)) +
                                        " (transparent huge pages)");
  return text;
}

std::string library_text(const std::optional<FoundLibrary>& library) {
  if (!library) return "not found";
  return library->file + (library->version.empty() ? "" : ": " + library->version);
}

}  // namespace

std::string diagnosis_text(const Diagnosis& diagnosis) {
  const Topology& t = diagnosis.topology;
  const auto& machine = diagnosis.machine;
  std::string text = row("machine", machine ? "this one" : plain(t.source));
  text += row("cores", fmt::format("{}, {}", counted(static_cast<int64_t>(t.cores.size()), "core"),
                                   counted(t.cpus(), "logical CPU")));
  text += row("memory", size_text(t.total_memory));
  if (machine) text += row("ISA", machine->isa);
  text += "\n" + topology_rows(t, machine ? machine->pci_links : PciLinks{});
  if (machine) {
    text += link_rows(machine->links) + limit_rows(machine->limits) + "\n";
    text += row("MPI", library_text(machine->mpi)) + row("NCCL", library_text(machine->nccl));
  }
  text += "\nwarnings\n";
  if (diagnosis.warnings.empty()) text += "  none\n";
  for (const Warning& w : diagnosis.warnings) text += "  " + plain(w.about) + ": " + w.text + "\n";
  return text;
}

}  // namespace hearth
