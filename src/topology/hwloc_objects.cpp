#include "topology/hwloc_objects.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/numbers.h"

namespace hearth {
namespace {

struct TypeName {
  std::string_view name;  // in small letters
  HwlocKind kind;
};
constexpr std::array kTypeNames{
    TypeName{"machine", HwlocKind::machine}, TypeName{"system", HwlocKind::machine},
    TypeName{"package", HwlocKind::package}, TypeName{"socket", HwlocKind::package},
    TypeName{"core", HwlocKind::core},       TypeName{"pu", HwlocKind::pu},
    TypeName{"group", HwlocKind::group},     TypeName{"die", HwlocKind::group},
    TypeName{"tile", HwlocKind::group},      TypeName{"module", HwlocKind::group},
    TypeName{"cache", HwlocKind::group},     TypeName{"numanode", HwlocKind::node},
    TypeName{"node", HwlocKind::node},       TypeName{"memcache", HwlocKind::memory_cache},
    TypeName{"bridge", HwlocKind::bridge},   TypeName{"pcidev", HwlocKind::pci_device},
    TypeName{"osdev", HwlocKind::os_device}, TypeName{"misc", HwlocKind::misc}};

std::optional<HwlocKind> kind_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const TypeName& type : kTypeNames) {
    if (name == type.name) return type.kind;
  }
  // L1Cache to L5Cache, L1iCache and so on.
  const bool level = name.size() > 2 && name[0] == 'l' && name[1] >= '1' && name[1] <= '5';
  const std::string rest = level ? name.substr(2) : "";
  if (rest == "cache" || rest == "icache" || rest == "dcache") return HwlocKind::group;
  return std::nullopt;
}

bool has_cpus(HwlocKind kind) { return kind <= HwlocKind::memory_cache; }
bool is_memory(HwlocKind kind) {
  return kind == HwlocKind::node || kind == HwlocKind::memory_cache;
}

// Elements that may be inside of an object beside other objects.
bool is_detail(std::string_view name) {
  return name == "info" || name == "page_type" || name == "userdata" || name == "distances";
}

}  // namespace

HwlocObjects::HwlocObjects(std::string_view text, const std::string& source)
    : source_(source), document_(text, source) {
  const std::vector<XmlElement>& elements = document_.elements();
  const XmlElement& root = elements.front();
  if (root.name != "topology" && root.name != "root") {
    refuse(root, "the document is " + quoted(root.name) + ", not a topology of hwloc");
  }
  const std::string version = document_.attribute(root, "version").value_or("1.0");
  const std::string_view minor =
      std::string_view(version).substr(std::min<size_t>(version.size(), 2));
  const bool is_number = !minor.empty() && minor.front() >= '0' && minor.front() <= '9';
  version_1_ = version.starts_with("0.") || version.starts_with("1.");
  if (!is_number || (!version_1_ && !version.starts_with("2."))) {
    refuse(root, "version " + quoted(version) + " of hwloc's XML; versions 1 and 2 are read");
  }
  if (root.end < 2 || elements[1].name != "object") refuse(root, "the topology has no object");
  add(1, -1, nullptr);
}

void HwlocObjects::refuse(const XmlElement& where, const std::string& what) const {
  throw input_error(source_ + ": line " + std::to_string(where.line) + ": " + what);
}

std::optional<NumberSet> HwlocObjects::set(const HwlocObject& object, std::string_view name) const {
  const std::optional<std::string> text = attribute(object, name);
  if (!text) return std::nullopt;
  std::optional<NumberSet> set = NumberSet::parse(*text);
  if (!set) {
    refuse(element(object), std::string(name) + " " + quoted(*text) +
                                " is no set of numbers below " + std::to_string(kMostCpus));
  }
  return set;
}

std::optional<uint64_t> HwlocObjects::number(const HwlocObject& object, std::string_view name,
                                             uint64_t most) const {
  const std::optional<std::string> text = attribute(object, name);
  if (!text) return std::nullopt;
  const std::optional<uint64_t> number = parse_seed(*text);
  if (!number || *number > most) {
    refuse(element(object), std::string(name) + " " + quoted(*text) +
                                " is no whole number from 0 to " + std::to_string(most));
  }
  return number;
}

std::string HwlocObjects::info(const HwlocObject& object, std::string_view name) const {
  const std::vector<XmlElement>& elements = document_.elements();
  for (uint32_t i = object.element + 1; i < element(object).end; i = elements[i].end) {
    if (elements[i].name != "info" || document_.attribute(elements[i], "name") != name) continue;
    return document_.attribute(elements[i], "value").value_or("");
  }
  return {};
}

// Deep as the document, which has a limit. `cpus_above` are those of the nearest object above that
// has CPUs: an object may have many below it, so its set is read once.
void HwlocObjects::add(uint32_t index, int parent, const NumberSet* cpus_above) {
  const std::vector<XmlElement>& elements = document_.elements();
  const XmlElement& element = elements[index];
  const std::optional<std::string> type = document_.attribute(element, "type");
  if (!type || document_.attributes(element).front().name != "type") {
    refuse(element, "an object that does not begin with its type");
  }
  const std::optional<HwlocKind> kind = kind_of(*type);
  if (!kind) refuse(element, "unknown type of object " + quoted(*type));

  HwlocObject object;
  object.kind = *kind;
  object.parent = parent;
  object.element = index;
  // Of packages and cores it is any 32 bits, and nothing here reads it.
  const auto number = parse_seed(attribute(object, "os_index").value_or(""));
  if (number && *number < uint64_t{kMostCpus}) object.number = static_cast<int>(*number);
  check(object, element);
  const std::optional<NumberSet> cpus = checked_cpus(object, element, cpus_above);
  if (parent >= 0 && object.kind == HwlocKind::machine) object.kind = HwlocKind::group;
  const auto own = static_cast<int>(objects_.size());
  objects_.push_back(object);
  for (uint32_t i = index + 1; i < element.end; i = elements[i].end) {
    if (elements[i].name == "object") {
      add(i, own, cpus ? &*cpus : cpus_above);
    } else if (!is_detail(elements[i].name)) {
      refuse(elements[i], "an object holds an unknown element " + quoted(elements[i].name));
    }
  }
  objects_[static_cast<size_t>(own)].end = static_cast<int>(objects_.size());
}

void HwlocObjects::check(const HwlocObject& object, const XmlElement& element) const {
  const HwlocKind kind = object.kind;
  if (object.parent < 0 && kind != HwlocKind::machine) {
    refuse(element, "the first object is no machine");
  }
  for (const std::string_view name :
       {"complete_cpuset", "online_cpuset", "allowed_cpuset", "allowed_nodeset"}) {
    set(object, name);
  }
  if ((kind == HwlocKind::pu || kind == HwlocKind::node) && object.number < 0) {
    refuse(element, "a CPU or NUMA node without a number below " + std::to_string(kMostCpus));
  }
  if (object.parent >= 0) check_place(object, element);
  check_nodes(object, element);
}

void HwlocObjects::check_place(const HwlocObject& object, const XmlElement& element) const {
  const HwlocKind kind = object.kind;
  const HwlocKind above = objects_[static_cast<size_t>(object.parent)].kind;
  // In version 1 a NUMA node holds the objects that are near it.
  const bool above_is_memory = !version_1_ && is_memory(above);
  const bool io = object.is_io();
  const bool above_is_io = objects_[static_cast<size_t>(object.parent)].is_io();
  const bool above_is_node = !version_1_ && above == HwlocKind::node;
  const bool wrong = is_memory(kind) ? above_is_io || above == HwlocKind::misc || above_is_node
                     : io            ? above_is_memory || above == HwlocKind::misc
                     : kind != HwlocKind::misc
                         ? above_is_io || above_is_memory || above == HwlocKind::misc
                         : false;
  if (wrong) refuse(element, "an object that cannot be below the object above it");
}

std::optional<NumberSet> HwlocObjects::checked_cpus(const HwlocObject& object,
                                                    const XmlElement& element,
                                                    const NumberSet* cpus_above) const {
  std::optional<NumberSet> cpus = set(object, "cpuset");
  if (object.is_io() && cpus) refuse(element, "an I/O object with a cpuset");
  if (!has_cpus(object.kind)) return std::nullopt;
  if (!cpus) refuse(element, "an object without its cpuset");
  if (cpus_above != nullptr && !cpus->is_within(*cpus_above)) {
    refuse(element, "the cpuset of an object has CPUs that the object above it lacks");
  }
  if (object.kind == HwlocKind::pu && !cpus->is_just(object.number)) {
    refuse(element, "the cpuset of CPU " + std::to_string(object.number) + " is another");
  }
  return cpus;
}

void HwlocObjects::check_nodes(const HwlocObject& object, const XmlElement& element) const {
  const std::optional<NumberSet> nodes = set(object, "nodeset");
  if (object.kind == HwlocKind::node) {
    if (!nodes) refuse(element, "a NUMA node without its nodeset");
    if (!nodes->is_just(object.number)) {
      refuse(element, "the nodeset of NUMA node " + std::to_string(object.number) + " is another");
    }
  }
  if (object.parent < 0 || !nodes || !has_cpus(object.kind)) return;
  if (!attribute(objects_[static_cast<size_t>(object.parent)], "nodeset")) {
    refuse(element, "an object with a nodeset below an object without one");
  }
}

}  // namespace hearth
