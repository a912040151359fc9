#include "topology/memory_binding.h"

#include "topology/hwloc_handle.h"

namespace hearth {
namespace {

// Null where hwloc cannot read this machine.
HwlocHandle load_with_devices() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  HwlocHandle handle(raw);
  if (hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_load(raw) != 0) {
    return nullptr;
  }
  return handle;
}

}  // namespace

int numa_node_of_pci(const std::string& bus_id) {
  const HwlocHandle handle = load_with_devices();
  if (!handle || hwloc_get_nbobjs_by_type(handle.get(), HWLOC_OBJ_NUMANODE) < 2) return -1;
  const hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(handle.get(), bus_id.c_str());
  const hwloc_obj_t above =
      device != nullptr ? hwloc_get_non_io_ancestor_obj(handle.get(), device) : nullptr;
  // A device below the whole machine is near no node in particular.
  const bool one = above != nullptr && hwloc_bitmap_weight(above->nodeset) == 1;
  return one ? hwloc_bitmap_first(above->nodeset) : -1;
}

bool bind_memory(void* address, size_t bytes, int node) {
  const HwlocHandle handle = load_with_devices();
  const hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
  if (!handle || nodes == nullptr || hwloc_bitmap_only(nodes, static_cast<unsigned>(node)) != 0) {
    hwloc_bitmap_free(nodes);
    return false;
  }
  const int refused = hwloc_set_area_membind(handle.get(), address, bytes, nodes,
                                             HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET);
  hwloc_bitmap_free(nodes);
  return refused == 0;
}

}  // namespace hearth
