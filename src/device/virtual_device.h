// A device for machines without one: host memory with a budget of its own, cores of its own, and
// links to the host that are as slow as one likes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/link.h"

namespace hearth {

struct VirtualOptions {
  std::string name = "virtual:0";
  uint64_t memory = UINT64_MAX;  // budget in bytes, scratch of streams included
  double h2d = 0, d2h = 0;       // bytes a second to the device and from it; 0: as memory is
  double latency = 0;            // seconds, of each copy
  std::vector<int> cores;        // logical CPUs of its compute streams; empty: as a stream asks
  std::shared_ptr<RootComplex> root;  // shared with others; null: none
};

/// Its memory is the space `device`, which the host reaches, but who honours the contract copies.
/// Its streams are host streams: ops of host back ends run there and have finished when they return,
/// as have copies, which take the time that the links give them. A copy from another virtual device
/// passes the link to the host of the device that carries it out. `clock` outlives the device.
std::unique_ptr<Device> make_virtual_device(const VirtualOptions& options,
                                            LinkClock& clock = steady_link_clock());

}  // namespace hearth
