// Whether the libraries that ops call compute what the ops' own kernels do.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "ops/op_set.h"

namespace hearth {

/// Computes small problems (dense maps, experts of uneven and no rows, packed sequences of
/// attention; f32 and bf16; forward and backward) once without any library and once with each. A
/// library that fails, or whose results differ by more than rounding explains, is not called again
/// in this process (OpSet::call_library). Returns a line for each of those. Takes some MB of the
/// device's memory while it runs, and as long as libraries take to prepare a dozen shapes. Blocks;
/// not while ops run. Device errors that break the device are raised.
std::vector<std::string> check_libraries(Device& device, const OpSet& ops);

}  // namespace hearth
