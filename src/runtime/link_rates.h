// Measures how fast the link between a device and the host is right now, for predictions.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace hearth {

/// The rates that the device states, or else a measurement of a few hundredths of a second. It takes
/// the best of several copies, of a few bytes and of 16 MiB, to and from pinned memory. It uses at
/// most `max_bytes` of the host's memory and as much of the device's. A usage error if `max_bytes` is
/// below 1 MiB.
LinkRates measure_links(Device& device, uint64_t max_bytes);

}  // namespace hearth
