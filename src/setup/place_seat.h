// Where the places of a run are in the machine, and which device holds which stage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device_list.h"
#include "plan/stage_mapping.h"
#include "topology/topology.h"

namespace hearth {

/// Where a place is in the machine.
struct PlaceSeat {
  std::string root;            // of a device: name of its root complex; empty: unknown
  std::optional<int> package;  // nothing: unknown, or of several packages
  std::vector<int> nodes;      // numbers of the NUMA nodes near it; of a host's place, its own
  // Of a GPU, or of a device that stands in the place of an accelerator: its name as a place
  // ("cuda:0"; empty: unknown), and what its link is said to carry (0: unknown).
  std::string accelerator = {};
  double link_bytes_per_s = 0;
  uint64_t memory = 0;  // of the accelerator or the node, as the topology says; 0: unknown
};

/// How devices find their seats. `keys`: a virtual device is below the root complex that `root`
/// names, a GPU at its own address. `address`: also, the N-th virtual device without `root` stands in
/// the place of the N-th accelerator of the topology, by PCI address; usage error if there are more
/// such devices than accelerators. A GPU without an address is the accelerator that the topology calls
/// "cudaN", else the one of that number; usage error if there is none. `described`: as `address`, but
/// virtual devices without an accelerator have no seat.
enum class Seats : uint8_t { keys, address, described };

/// The seats of the devices of a list, in its order, without host items. `addresses`: PCI addresses
/// of its GPUs, in the same order, empty for other devices.
std::vector<PlaceSeat> device_seats(std::span<const DeviceItem> devices, const Topology& topology,
                                    Seats seats, std::span<const std::string> addresses = {});

/// Cross mapping (plan/stage_mapping.h): the devices in the order of their stages.
struct DeviceOrder {
  std::vector<size_t> order;        // positions in the list of devices
  std::vector<StageDevice> mapped;  // in the order of the list; empty if there is no choice
};
DeviceOrder order_of_stages(std::span<const DeviceItem> devices, std::span<const PlaceSeat> seats);

}  // namespace hearth
