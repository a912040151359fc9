#include "topology/topology.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "topology/control_group.h"
#include "topology/hwloc_handle.h"

namespace hearth {
namespace {

HwlocHandle load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw storage_error("topology: hwloc does not start");
  HwlocHandle handle(raw);
  // Only what this process may use: affinity (RESTRICT_TO_CPUBINDING), and what hwloc leaves out by
  // itself: CPUs and nodes that the control group does not allow.
  if (hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM |
                                        HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING) != 0 ||
      hwloc_topology_load(raw) != 0) {
    throw storage_error("topology: hwloc cannot read this machine; is /sys mounted?");
  }
  return handle;
}

std::vector<int> numbers(hwloc_const_bitmap_t set) {
  std::vector<int> result;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) result.push_back(i);
  return result;
}

int package_of(hwloc_topology_t topology, hwloc_obj_t object) {
  const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
  return package ? static_cast<int>(package->logical_index) : 0;
}

int nearest_node(hwloc_obj_t object) {
  const int first = object->nodeset ? hwloc_bitmap_first(object->nodeset) : -1;
  return std::max(first, 0);
}

std::string cpu_model(hwloc_topology_t topology) {
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_MACHINE}) {
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, 0);
    const char* model = object ? hwloc_obj_get_info_by_name(object, "CPUModel") : nullptr;
    if (model) return model;
  }
  return {};
}

}  // namespace

std::vector<int> Topology::worker_cpus(int n) const {
  std::vector<int> result;
  for (const TopologyCore& core : cores) {
    if (n > 0 && result.size() == static_cast<size_t>(n)) break;
    result.push_back(core.cpus.front());
  }
  return result;
}

Topology detect_topology() {
  const HwlocHandle handle = load();
  const hwloc_topology_t hwloc = handle.get();
  Topology result;
  result.cpu_model = cpu_model(hwloc);
  result.packages = std::max(1, hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PACKAGE));

  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node));) {
    result.nodes.push_back({static_cast<int>(node->os_index), node->attr->numanode.local_memory});
    result.total_memory += node->attr->numanode.local_memory;
  }
  // Virtual machines may show no cores, only logical CPUs.
  const bool has_cores = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(hwloc, type, core));) {
    result.cores.push_back({package_of(hwloc, core), nearest_node(core), numbers(core->cpuset)});
  }
  if (result.cores.empty() || result.nodes.empty()) {
    throw storage_error("topology: hwloc shows no CPU or no memory; is /sys mounted?");
  }
  // Virtual machines that lend memory back show nodes that shrink and grow; the system's own total
  // stays, and plans must not depend on the moment.
  const auto system_total =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  result.total_memory = std::max(result.total_memory, system_total);
  const uint64_t limit = control_group_memory_limit();
  if (limit > 0 && (result.total_memory == 0 || limit < result.total_memory)) {
    result.total_memory = limit;
  }
  return result;
}

}  // namespace hearth
