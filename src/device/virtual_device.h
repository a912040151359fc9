// A simulated device for machines without a GPU: host memory with its own budget, its own cores,
// and links to the host of any chosen speed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/fabric.h"

namespace hearth {

struct VirtualOptions {
  std::string name = "virtual:0";
  uint64_t memory = UINT64_MAX;  // budget in bytes; includes the scratch of streams
  double h2d = 0, d2h = 0;       // bytes per second to and from the device; 0: no limit
  double latency = 0;            // seconds per copy
  double d2h_latency = -1;       // seconds per copy from the device; below 0: as `latency`
  int workers = 0;               // of compute streams; 0: one per core of `cores`
  std::vector<int> cores;        // of these workers; empty: if workers is 0, as in StreamOptions
  std::shared_ptr<RootComplex> root;  // may be shared; null: none
  std::shared_ptr<Fabric> fabric;     // all virtual devices of a run share one; null: its own
};

/// Its memory is the space `device`. The host can access it, but portable code copies instead. Its
/// streams are host streams: ops and copies finish before they return, and copies take the
/// simulated time of the links. A copy between two virtual devices of one fabric goes through the host:
/// it occupies the link out of one device and the link into the other at the same time, and takes
/// both latencies and the time of the slower link. The bytes themselves are copied once. Memory of
/// another fabric counts as the host's. `clock` must outlive the device.
std::unique_ptr<Device> make_virtual_device(const VirtualOptions& options,
                                            LinkClock& clock = steady_link_clock());

}  // namespace hearth
