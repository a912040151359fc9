// The host as a device: its cores, and its memory with a budget.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/device.h"

namespace hearth {

/// `budget` bounds the bytes that arenas and streams hold at one time. `node`: arenas are bound to
/// this NUMA node; -1: not bound.
std::unique_ptr<Device> make_host_device(uint64_t budget, std::string name = "host", int node = -1);

}  // namespace hearth
