// Checks that the libraries that ops call compute the same as the ops' own kernels.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "ops/op_set.h"

namespace hearth {

/// Runs small problems without any library, then with each library, and compares the results. The
/// problems are dense maps, experts with uneven and with no rows, and attention over packed
/// sequences, in f32 and bf16, forward and backward. If a library fails, or differs by more than
/// rounding explains, this process does not call it again (OpSet::call_library). Returns one line for
/// each such library. Uses a few MB of device memory, and the time that libraries need to prepare a
/// dozen shapes. Blocks; not while ops run. Raises errors that break the device.
std::vector<std::string> check_libraries(Device& device, const OpSet& ops);

}  // namespace hearth
