// Fills memory of a device with numbers for measurements. The device does it, so nothing passes the
// link to the host, which may be slow.
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "device/device.h"

namespace hearth {

/// Numbers of both signs, 0.001 to 0.09, about zero on average. Not zeros: some loops skip them.
void fill_small(Device& device, Stream& stream, std::byte* data, size_t bytes, DType type);
/// Numbers above zero, 4e-5 in f32 and bf16.
void fill_positive(Device& device, Stream& stream, std::byte* data, size_t bytes);

}  // namespace hearth
