// The objects of hwloc's XML, as a tree: what hwloc requires of each object is checked here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/number_set.h"
#include "topology/xml_document.h"

namespace hearth {

enum class HwlocKind : uint8_t {
  machine,
  package,
  core,
  pu,
  group,  // and every other object with CPUs: dies, caches
  node,
  memory_cache,
  bridge,
  pci_device,
  os_device,
  misc,
};

struct HwlocObject {
  HwlocKind kind = HwlocKind::misc;
  int parent = -1;       // index; -1: the machine
  int end = 0;           // index of the object after this one and all below it
  int number = -1;       // os_index; -1: none
  uint32_t element = 0;  // of the document
  bool is_io() const { return kind >= HwlocKind::bridge && kind <= HwlocKind::os_device; }
};

/// Refers to the text that it was made from.
class HwlocObjects {
 public:
  /// Input error, starting with `source`, for what hwloc does not read: another format or version,
  /// unknown types, objects below such as cannot hold them, objects without CPUs or with CPUs that
  /// are no set. Also for what hwloc reads and leaves out in silence: objects whose CPUs are not
  /// those of the object above, CPUs and nodes whose set is not their own number.
  HwlocObjects(std::string_view text, const std::string& source);

  const std::vector<HwlocObject>& all() const { return objects_; }  // the first is the machine
  bool version_1() const { return version_1_; }
  const XmlDocument& document() const { return document_; }
  const XmlElement& element(const HwlocObject& object) const {
    return document_.elements()[object.element];
  }

  std::optional<std::string> attribute(const HwlocObject& object, std::string_view name) const {
    return document_.attribute(element(object), name);
  }
  /// An attribute that is a set of numbers; nullopt if the object does not have it.
  std::optional<NumberSet> set(const HwlocObject& object, std::string_view name) const;
  /// A whole number up to `most`; nullopt if the attribute is missing. Input error for anything else.
  std::optional<uint64_t> number(const HwlocObject& object, std::string_view name,
                                 uint64_t most) const;
  /// The value of <info name=... value=...> of an object; empty if there is none.
  std::string info(const HwlocObject& object, std::string_view name) const;

  [[noreturn]] void refuse(const XmlElement& where, const std::string& what) const;

 private:
  void add(uint32_t element, int parent, const NumberSet* cpus_above);
  void check(const HwlocObject& object, const XmlElement& element) const;
  void check_place(const HwlocObject& object, const XmlElement& element) const;
  std::optional<NumberSet> checked_cpus(const HwlocObject& object, const XmlElement& element,
                                        const NumberSet* cpus_above) const;
  void check_nodes(const HwlocObject& object, const XmlElement& element) const;

  std::string source_;
  XmlDocument document_;
  bool version_1_ = false;
  std::vector<HwlocObject> objects_;
};

}  // namespace hearth
