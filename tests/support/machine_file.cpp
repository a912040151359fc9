#include "support/machine_file.h"

#include <fmt/format.h>

namespace hearth::test {
namespace {

std::string set_of(const std::set<int>& numbers) {
  if (numbers.empty()) return "0x0";
  std::string text;
  for (int word = *numbers.rbegin() / 32; word >= 0; --word) {
    uint32_t bits = 0;
    for (int i = 0; i < 32; ++i) bits |= numbers.contains(32 * word + i) ? 1u << i : 0;
    text += fmt::format("{}0x{:08x}", text.empty() ? "" : ",", bits);
  }
  return text;
}

class Writer {
 public:
  explicit Writer(const FileMachine& m) : m_(m) {}

  std::string write() {
    text_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"";
    text_ +=
        m_.version_1 ? "hwloc.dtd\">\n<topology>\n" : "hwloc2.dtd\">\n<topology version=\"2.0\">\n";
    std::set<int> all;
    for (int p = 0; p < m_.packages; ++p) all.merge(cpus_of(p));
    std::string extra = fmt::format(" allowed_cpuset=\"{}\"", set_of(without(all, m_.disallowed)));
    if (m_.nodes || !m_.version_1) {
      extra += fmt::format(" allowed_nodeset=\"{}\"",
                           set_of(without(nodes_of(-1), m_.disallowed_nodes)));
    }
    if (m_.version_1 && !m_.nodes) extra += fmt::format(" local_memory=\"{}\"", kNodeBytes);
    begin("Machine", 0, all, nodes_of(-1), extra);
    text_ += "<info name=\"OSName\" value=\"Linux\"/>\n";
    if (m_.far_node && !m_.version_1) node(m_.packages * 2, all, kFarBytes, true);
    for (int p = 0; p < m_.packages; ++p) package(p);
    if (m_.far_node && m_.version_1) node(m_.packages * 2, {}, kFarBytes, true);
    for (const FileBridge& bridge : m_.bridges) {
      if (bridge.package < 0) write_bridge(bridge);
    }
    return text_ + "</object>\n" + m_.after + "</topology>\n";
  }

 private:
  static std::set<int> without(std::set<int> from, const std::set<int>& what) {
    for (const int n : what) from.erase(n);
    return from;
  }

  std::set<int> cpus_of(int package) const {
    std::set<int> cpus;
    const int count = m_.cores * m_.threads;
    for (int i = 0; i < count; ++i) cpus.insert(package * count + i);
    return without(cpus, m_.offline);
  }

  bool has_node(int package) const { return m_.nodes && !m_.no_node.contains(package); }

  // Of a package, or of all for -1.
  std::set<int> nodes_of(int package) const {
    std::set<int> nodes;
    for (int p = 0; p < m_.packages; ++p) {
      if (package >= 0 && p != package) continue;
      if (has_node(p)) nodes.insert(p);
      if (has_node(p) && m_.fast_nodes) nodes.insert(m_.packages + p);
    }
    if (m_.far_node) nodes.insert(2 * m_.packages);
    if (nodes.empty() && package < 0) nodes.insert(0);
    return nodes;
  }

  void begin(const std::string& type, int number, const std::set<int>& cpus,
             const std::set<int>& nodes, const std::string& extra = "", bool closed = false) {
    std::set<int> complete = cpus;  // with what is offline
    for (const int cpu : m_.offline) {
      if (type == "Machine" || (!cpus.empty() && *cpus.begin() < cpu && cpu < *cpus.rbegin())) {
        complete.insert(cpu);
      }
    }
    text_ += fmt::format("<object type=\"{}\" os_index=\"{}\" cpuset=\"{}\" complete_cpuset=\"{}\"",
                         type, number, set_of(cpus), set_of(complete));
    if (m_.nodes || !m_.version_1) {
      text_ += fmt::format(" nodeset=\"{0}\" complete_nodeset=\"{0}\"", set_of(nodes));
    }
    text_ += extra + identity() + (closed ? "/>\n" : ">\n");
  }

  std::string identity() {
    return m_.version_1 ? "" : fmt::format(" gp_index=\"{}\"", ++identities_);
  }

  void node(int number, const std::set<int>& cpus, uint64_t bytes, bool closed) {
    begin("NUMANode", number, cpus, {number}, fmt::format(" local_memory=\"{}\"", bytes), closed);
  }

  void package(int p) {
    const uint64_t bytes = m_.no_memory.contains(p) ? 0 : kNodeBytes;
    const bool above = m_.version_1 && has_node(p);  // in version 1 nodes hold packages
    if (above) node(p, cpus_of(p), bytes, false);
    begin(m_.version_1 ? "Socket" : "Package", p, cpus_of(p), nodes_of(p));
    text_ += "<info name=\"CPUModel\" value=\"Model &quot;X&quot; &#64; 2.0GHz\"/>\n";
    if (has_node(p) && !m_.version_1) {
      node(p, cpus_of(p), bytes, true);
      if (m_.fast_nodes) node(m_.packages + p, cpus_of(p), kFastBytes, true);
    }
    for (int c = 0; c < m_.cores; ++c) core(p, c);
    for (const FileBridge& bridge : m_.bridges) {
      if (bridge.package == p) write_bridge(bridge);
    }
    text_ += "</object>\n";
    if (above) text_ += "</object>\n";
    if (has_node(p) && m_.version_1 && m_.fast_nodes) {
      node(m_.packages + p, {}, kFastBytes, true);
    }
  }

  void core(int p, int c) {
    std::set<int> cpus;
    for (int t = 0; t < m_.threads; ++t) cpus.insert((p * m_.cores + c) * m_.threads + t);
    cpus = without(cpus, m_.offline);
    if (cpus.empty()) return;
    begin("Core", c, cpus, nodes_of(p));
    for (const int cpu : cpus) begin("PU", cpu, {cpu}, nodes_of(p), "", true);
    text_ += "</object>\n";
  }

  void write_bridge(const FileBridge& bridge) {
    text_ += fmt::format(
        "<object type=\"Bridge\"{} bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"{}\">\n",
        identity(), bridge.buses);
    for (const FileDevice& device : bridge.devices) {
      // Below a bridge between PCI buses, as real devices are.
      text_ += fmt::format(
          "<object type=\"Bridge\"{} bridge_type=\"1-1\" depth=\"1\" bridge_pci=\"0000:[17-17]\" "
          "pci_busid=\"0000:16:02.0\" pci_type=\"0604 [8086:347a] [8086:0000] 04\">\n",
          identity());
      text_ += fmt::format(
          "<object type=\"PCIDev\"{} pci_busid=\"{}\" pci_type=\"{} [10de:20b5] "
          "[10de:1533] a1\"",
          identity(), device.address, device.class_code);
      if (!device.link_speed.empty()) {
        text_ += " pci_link_speed=\"" + device.link_speed + "\"";
      }
      text_ += ">\n";
      for (const std::string& os : device.os_devices) text_ += os;
      text_ += "</object>\n</object>\n";
    }
    text_ += "</object>\n";
  }

  const FileMachine& m_;
  std::string text_;
  int identities_ = 0;
};

}  // namespace

std::string machine_file(const FileMachine& machine) { return Writer(machine).write(); }

std::string os_device(bool version_1, const std::string& name, int type,
                      const std::string& interface) {
  static int identity = 100000;
  std::string text = "<object type=\"OSDev\"";
  if (!version_1) text += fmt::format(" gp_index=\"{}\"", ++identity);
  if (!version_1 && !interface.empty()) text += " subtype=\"" + interface + "\"";
  text += fmt::format(" name=\"{}\" osdev_type=\"{}\">\n", name, type);
  if (version_1 && !interface.empty()) {
    text += "<info name=\"" + std::string(type == 5 ? "CoProcType" : "Backend") + "\" value=\"" +
            interface + "\"/>\n";
  }
  return text + "</object>\n";
}

}  // namespace hearth::test
