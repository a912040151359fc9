// Measures links: between the host and devices, and between the memories of the host.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "topology/topology.h"

namespace hearth {

/// A link from one place to another, in bytes per second.
struct LinkMeasurement {
  std::string link;     // "host->cuda:0"
  double nominal = 0;   // 0: unknown
  double alone = 0;     // while no other measured link is in use
  double together = 0;  // while all links of its kind are in use, both ways
};

/// A device whose links are measured. Rates that are 0 are unknown.
struct MeasuredDevice {
  Device* device = nullptr;
  double nominal_in = 0, nominal_out = 0;
};

/// Bounds of a measurement. A link that is slower than a copy takes at its nominal speed makes it
/// longer: a copy is not cut off.
struct MeasurementBounds {
  double seconds = 8;
  uint64_t bytes = uint64_t{512} << 20;  // of host memory, and of each device's
};

/// Both links of each device, "host->NAME" and "NAME->host".
std::vector<LinkMeasurement> measure_device_links(std::span<const MeasuredDevice> devices,
                                                  const MeasurementBounds& bounds);

/// Copies within the memory of each NUMA node by its own cores ("host->host"; with several nodes
/// "host:0->host:0"), and from each node to each other, by the cores of the other. With nodes that
/// are not the system's, the host counts as one.
std::vector<LinkMeasurement> measure_memory(const Topology& topology,
                                            const MeasurementBounds& bounds);

}  // namespace hearth
