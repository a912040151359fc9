// Checks that libraries compute the same results as our own kernels.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "ops/op_set.h"
#include "runtime/remembered_checks.h"

namespace hearth {

/// Runs small problems without any library, then with each library, and compares the results. The
/// problems are dense maps, experts with uneven or zero rows, and attention over packed sequences,
/// in f32 and bf16, forward and backward. A library that fails, or differs by more than rounding
/// explains, is disabled for this process (OpSet::call_library). Returns one line for each such
/// library. Uses a few MB of device memory, and the time that libraries need to prepare a dozen
/// shapes. Blocks. Do not call while ops run. Raises errors that break the device.
std::vector<std::string> check_libraries(Device& device, const OpSet& ops);

/// What `check_libraries` returns, unless `checks` remembers that these libraries of this program
/// have passed on a device of this identity. If nothing is said against any of them, it is
/// remembered. A device without an identity is always checked.
struct LibraryVerdict {
  std::vector<std::string> lines;
  bool remembered = false;
};
LibraryVerdict check_libraries_once(Device& device, const OpSet& ops,
                                    const RememberedChecks& checks);

}  // namespace hearth
