// Where the places of a run are in the machine, and which device holds which stage.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device_list.h"
#include "topology/topology.h"

namespace hearth {

/// Where a place is in the machine.
struct PlaceSeat {
  std::string root;             // of a device: name of its root complex; empty: unknown
  std::optional<int> package;   // nothing: unknown, or of several packages
  std::vector<int> nodes;       // numbers of the NUMA nodes near it; of a host's place, its own
  double link_bytes_per_s = 0;  // of a GPU, as the system says; 0: unknown
};

/// The seats of the devices of a list, in its order, without host items. A virtual device is below
/// the root complex that `root` names. `by_address`: the N-th virtual device without `root` stands in
/// the place of the N-th accelerator of the topology, by PCI address. A GPU is at its own address:
/// `addresses`, in the order of the list, empty for other devices. Usage error if there are more such
/// virtual devices than accelerators.
std::vector<PlaceSeat> device_seats(std::span<const DeviceItem> devices, const Topology& topology,
                                    bool by_address, std::span<const std::string> addresses = {});

/// Cross mapping (plan/stage_mapping.h): the devices in the order of their stages, and why.
struct DeviceOrder {
  std::vector<size_t> order;  // positions in the list of devices
  std::string reason;         // empty if there is no choice
};
DeviceOrder order_of_stages(std::span<const DeviceItem> devices, std::span<const PlaceSeat> seats);

}  // namespace hearth
