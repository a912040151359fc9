#include "topology/machine_xml.h"

#include "base/error.h"
#include "topology/hwloc_handle.h"

namespace hearth {
namespace {

// Version 3 of hwloc writes version 2 of its XML if asked to.
constexpr unsigned long kVersion2 =
#if HWLOC_API_VERSION >= 0x00030000
    HWLOC_TOPOLOGY_EXPORT_XML_FLAG_V2;
#else
    0;
#endif

HwlocHandle load(bool devices) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw storage_error("topology: hwloc does not start");
  HwlocHandle handle(raw);
  const auto io = devices ? HWLOC_TYPE_FILTER_KEEP_ALL : HWLOC_TYPE_FILTER_KEEP_NONE;
  if (hwloc_topology_set_flags(
          raw, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
      hwloc_topology_set_io_types_filter(raw, io) != 0 || hwloc_topology_load(raw) != 0) {
    throw storage_error("topology: hwloc cannot read this machine; is /sys mounted?");
  }
  return handle;
}

}  // namespace

MachineXml read_machine(bool devices) {
  const HwlocHandle handle = load(devices);
  MachineXml machine;
  char* text = nullptr;
  int length = 0;
  if (hwloc_topology_export_xmlbuffer(handle.get(), &text, &length, kVersion2) != 0) {
    throw storage_error("topology: hwloc does not write its XML");
  }
  machine.text.assign(text, static_cast<size_t>(length));
  hwloc_free_xmlbuffer(handle.get(), text);
  while (!machine.text.empty() && machine.text.back() == '\0') machine.text.pop_back();

  const hwloc_bitmap_t bound = hwloc_bitmap_alloc();
  if (bound != nullptr && hwloc_get_cpubind(handle.get(), bound, HWLOC_CPUBIND_THREAD) == 0) {
    for (int i = hwloc_bitmap_first(bound); i >= 0; i = hwloc_bitmap_next(bound, i)) {
      machine.cpus.push_back(i);
    }
  }
  hwloc_bitmap_free(bound);
  if (machine.cpus.empty()) throw storage_error("topology: the affinity mask cannot be read");
  return machine;
}

}  // namespace hearth
