// What the system says about this process.
#pragma once

#include <cstdint>

namespace hearth {

/// Memory of the process now, and its peak so far (VmRSS, VmHWM), in bytes.
uint64_t resident_bytes();
uint64_t peak_resident_bytes();

/// Makes the allocator predictable: few arenas whatever the number of threads, large blocks mapped
/// and given back at once. Before the first thread.
void limit_allocator();
/// Gives freed memory back to the system, so that `resident_bytes` counts what is in use.
void release_freed_memory();

}  // namespace hearth
