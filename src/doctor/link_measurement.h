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
  std::string link;       // "host->cuda:0"
  double nominal = 0;     // 0: unknown
  double alone = 0;       // while no other measured link is in use
  double together = 0;    // while all links of its kind are in use, both ways
  bool too_slow = false;  // alone, together or both are 0: copies would have outlasted the bounds
};

/// A device whose links are measured. Rates that are 0 are unknown.
struct MeasuredDevice {
  Device* device = nullptr;
  double nominal_in = 0, nominal_out = 0;
  double latency_in = 0, latency_out = 0;  // seconds per copy
};

/// Bounds of a measurement. A copy is not cut off, so what cannot end in time at its nominal speed
/// is not begun, and nothing is begun once the time is up. Links at once are also not begun if they
/// could not end in time at the speed that each has alone. Only a link that is slower than all of
/// this, or a busy machine, makes a measurement longer, by one run at most.
struct MeasurementBounds {
  double seconds = 8;  // of the whole call, its buffers included; 0 or less: no link is measured
  uint64_t bytes = uint64_t{384} << 20;  // of buffers, on the host and all devices together
  double more_if_busy = 0;               // seconds for what a busy machine leaves no time for
};

/// Both links of each device, "host->NAME" and "NAME->host".
std::vector<LinkMeasurement> measure_device_links(std::span<const MeasuredDevice> devices,
                                                  const MeasurementBounds& bounds);

/// Copies within the memory of each NUMA node by its own cores ("host->host"; with several nodes
/// "host:0->host:0"), and from each node to each other, by the cores of the other.
std::vector<LinkMeasurement> measure_memory(const Topology& topology,
                                            const MeasurementBounds& bounds);

}  // namespace hearth
