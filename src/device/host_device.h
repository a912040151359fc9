// The host: its memory with a budget, its cores.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"

namespace hearth {

/// Host memory and cores. `budget` in bytes bounds what arenas and streams hold at one time.
std::unique_ptr<Device> make_host_device(uint64_t budget);

}  // namespace hearth
