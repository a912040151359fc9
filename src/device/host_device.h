// The host as a device: its cores, and its memory with a budget.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"

namespace hearth {

/// `budget` bounds the bytes that arenas and streams hold at one time.
std::unique_ptr<Device> make_host_device(uint64_t budget);

}  // namespace hearth
