// What the system says about this process.
#pragma once

#include <cstdint>

namespace hearth {

/// Memory of the process now, and its peak so far (VmRSS, VmHWM), in bytes.
uint64_t resident_bytes();
uint64_t peak_resident_bytes();

}  // namespace hearth
