// What the link between a device and the host gives right now, for predictions.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace hearth {

/// What is known of it, else measured in some hundredths of a second: the best of several copies, of
/// a few bytes and of 16 MiB from pinned memory and to it. Takes `max_bytes` of the host's memory and
/// as much of the device's, 1 MiB at least; a usage error where there is less.
LinkRates measure_links(Device& device, uint64_t max_bytes);

}  // namespace hearth
