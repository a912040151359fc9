#include "topology/hwloc_pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/numbers.h"

namespace hearth {
namespace {

// Cuts `count` hex digits or more at the front of a text; nullopt if there are none, or too many.
std::optional<uint32_t> take_hex(std::string_view& text, size_t most) {
  uint32_t value = 0;
  const char* last = text.data() + std::min(text.size(), most);
  const auto [end, error] = std::from_chars(text.data(), last, value, 16);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

/// "0302 [10de:20b5] [10de:1533] a1".
struct PciType {
  std::optional<uint32_t> class_code;
  std::optional<uint32_t> vendor;
};

PciType type_of(std::string_view text) {
  PciType type;
  const auto code = take_hex(text, 4);
  if (!code) return type;
  if (!text.empty() && text.front() != ' ' && text.front() != '[') return type;
  type.class_code = *code;
  if (take(text, ' ') && take(text, '[')) type.vendor = take_hex(text, 4);
  return type;
}

/// "0000:[2b-2e]" as "0000-2b".
std::optional<std::string> root_name(std::string_view buses) {
  const auto domain = take_hex(buses, 8);
  if (!domain || !take(buses, ':') || !take(buses, '[')) return std::nullopt;
  const auto first = take_hex(buses, 2);
  if (!first || !take(buses, '-')) return std::nullopt;
  return fmt::format("{:04x}-{:02x}", *domain, *first);
}

// Whether a text is one of these names with nothing or a digit after it, in any case: "cuda0".
bool begins_with_any(std::string text, std::initializer_list<std::string_view> names) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return text.starts_with(name) &&
           (text.size() == name.size() || (text[name.size()] >= '0' && text[name.size()] <= '9'));
  });
}

constexpr std::string_view kNetwork = "2", kOpenFabrics = "3";  // osdev_type

class PciReader {
 public:
  PciReader(const HwlocObjects& objects, const PackageOf& package_of, Topology& topology)
      : objects_(objects), package_of_(package_of), topology_(topology) {}

  void read() {
    const auto count = static_cast<int>(objects_.all().size());
    for (int i = 0; i < count; ++i) {
      if (at(i).kind == HwlocKind::bridge) read_bridge(i);
      if (at(i).kind == HwlocKind::pci_device) read_device(i);
    }
    const auto by_name = [](const TopologyRoot& a, const TopologyRoot& b) {
      return a.name < b.name;
    };
    std::stable_sort(topology_.roots.begin(), topology_.roots.end(), by_name);
    for (auto* devices : {&topology_.accelerators, &topology_.nics, &topology_.graphics}) {
      std::stable_sort(
          devices->begin(), devices->end(),
          [](const PciDevice& a, const PciDevice& b) { return a.address < b.address; });
    }
  }

 private:
  const HwlocObject& at(int index) const { return objects_.all()[static_cast<size_t>(index)]; }

  // The object with CPUs that an I/O object hangs below.
  int holder_of(int object) const {
    while (object > 0 && at(object).is_io()) object = at(object).parent;
    return object;
  }

  void place(int object, std::optional<int>& package, std::vector<int>& nodes) const {
    const int holder = holder_of(object);
    package = package_of_(holder);
    std::optional<NumberSet> near;
    if (package) near = objects_.set(at(holder), "nodeset");
    for (const NumaNode& node : topology_.nodes) {
      const bool is_near = !package || (near ? near->contains(node.number)
                                             : !node.package || node.package == package);
      if (is_near) nodes.push_back(node.number);
    }
  }

  void read_bridge(int index) {
    const HwlocObject& bridge = at(index);
    const std::string type = objects_.attribute(bridge, "bridge_type").value_or("");
    if (type != "0-1") return;  // of host and PCI; "1-1" is between two PCI buses
    const auto name = root_name(objects_.attribute(bridge, "bridge_pci").value_or(""));
    if (!name) return;
    root_of_.emplace(index, *name);
    TopologyRoot root{*name, std::nullopt, {}};
    place(index, root.package, root.nodes);
    topology_.roots.push_back(std::move(root));
  }

  void read_device(int index) {
    const HwlocObject& object = at(index);
    const std::string bus_id = objects_.attribute(object, "pci_busid").value_or("");
    const std::string type_text = objects_.attribute(object, "pci_type").value_or("");
    const auto address = normal_pci_address(bus_id);
    const PciType type = type_of(type_text);
    // A device that is left out would change what is planned for the machine.
    if (!address) refuse(object, "pci_busid " + quoted(bus_id) + " is no PCI address");
    if (!type.class_code) refuse(object, "pci_type " + quoted(type_text) + " has no class");
    const uint32_t code = *type.class_code, base = code >> 8;
    PciDevice device;
    device.address = *address;
    device.class_code = fmt::format("{:04x}", code);
    device.vendor = objects_.info(object, "PCIVendor");
    if (device.vendor.empty() && type.vendor) device.vendor = fmt::format("{:04x}", *type.vendor);
    bool computes = code == 0x0302 || code == 0x0b40 || base == 0x12;
    bool connects = base == 0x02 || code == 0x0c06;
    for (int i = index + 1; i < object.end; ++i) {
      if (at(i).kind != HwlocKind::os_device) continue;
      const std::string kind = objects_.attribute(at(i), "osdev_type").value_or("");
      computes |= base == 0x03 && is_compute_interface(at(i));
      connects |= kind == kNetwork || kind == kOpenFabrics;
      device.memory = std::max(device.memory, memory_of(at(i)));
      if (auto name = objects_.attribute(at(i), "name")) device.names.push_back(std::move(*name));
    }
    const bool displays = base == 0x03;
    if (!computes && !connects && !displays) return;
    for (int i = object.parent; i >= 0 && device.root.empty(); i = at(i).parent) {
      if (const auto root = root_of_.find(i); root != root_of_.end()) device.root = root->second;
    }
    place(index, device.package, device.nodes);
    device.link_bytes_per_s = link_rate_of(object);
    (computes   ? topology_.accelerators
     : connects ? topology_.nics
                : topology_.graphics)
        .push_back(std::move(device));
  }

  [[noreturn]] void refuse(const HwlocObject& object, const std::string& what) const {
    objects_.refuse(objects_.element(object), what);
  }

  // Bytes per second; 0: unknown. The file has GB/s, and a comma where its machine writes numbers so.
  double link_rate_of(const HwlocObject& object) const {
    constexpr double kMost = 1e6;
    std::string text = objects_.attribute(object, "pci_link_speed").value_or("0");
    std::replace(text.begin(), text.end(), ',', '.');
    const auto speed = parse_number(text);
    if (!speed || *speed < 0 || *speed > kMost) {
      objects_.refuse(objects_.element(object),
                      "pci_link_speed " + quoted(text) + " is no number of GB/s from 0 to 1000000");
    }
    return *speed * 1e9;
  }

  // What a compute interface says of its memory: KiB.
  uint64_t memory_of(const HwlocObject& object) const {
    constexpr uint64_t kMostKib = kMostMemory >> 10;
    for (const char* key : {"CUDAGlobalMemorySize", "LevelZeroHBMSize", "OpenCLGlobalMemorySize"}) {
      const std::string text = objects_.info(object, key);
      if (text.empty()) continue;
      const auto kib = parse_seed(text);
      if (!kib || *kib > kMostKib) {
        objects_.refuse(objects_.element(object), std::string(key) + " " + quoted(text) +
                                                      " is no number of KiB from 0 to " +
                                                      std::to_string(kMostKib));
      }
      if (*kib > 0) return *kib << 10;
    }
    return 0;
  }

  // A device of CUDA, OpenCL, NVML, RSMI or Level Zero. hwloc 1.x says so in its infos.
  bool is_compute_interface(const HwlocObject& object) const {
    const auto is_one = [](const std::string& text) {
      return begins_with_any(text, {"cuda", "opencl", "nvml", "rsmi", "levelzero", "ze"});
    };
    return is_one(objects_.attribute(object, "subtype").value_or("")) ||
           is_one(objects_.info(object, "CoProcType")) ||
           is_one(objects_.info(object, "Backend")) ||
           is_one(objects_.attribute(object, "name").value_or(""));
  }

  const HwlocObjects& objects_;
  const PackageOf& package_of_;
  Topology& topology_;
  std::map<int, std::string> root_of_;  // by object
};

}  // namespace

std::optional<std::string> normal_pci_address(std::string_view text) {
  std::array<uint32_t, 3> parts{};  // domain, bus, device
  const auto colons = std::count(text.begin(), text.end(), ':');
  if (colons != 1 && colons != 2) return std::nullopt;
  for (size_t i = 2 - static_cast<size_t>(colons); i < 3; ++i) {
    const auto part = take_hex(text, i == 0 ? 8 : 2);
    if (!part || !take(text, i < 2 ? ':' : '.')) return std::nullopt;
    parts[i] = *part;
  }
  const auto function = take_hex(text, 1);
  if (!function || !text.empty()) return std::nullopt;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", parts[0], parts[1], parts[2], *function);
}

void read_pci(const HwlocObjects& objects, const PackageOf& package_of, Topology& topology) {
  PciReader(objects, package_of, topology).read();
}

}  // namespace hearth
