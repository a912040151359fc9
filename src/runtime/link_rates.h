// Measures the current speed of the link between a device and the host, for predictions.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace hearth {

/// The rates that the device states, or else a measurement of a few hundredths of a second. The
/// measurement takes the best of several copies, of a few bytes and of 16 MiB, to and from pinned
/// memory. It uses at most `max_bytes` of host memory, and as much device memory. Usage error if
/// `max_bytes` is below 1 MiB.
LinkRates measure_links(Device& device, uint64_t max_bytes);

}  // namespace hearth
