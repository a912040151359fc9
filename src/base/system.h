// Memory of this process, from the system.
#pragma once

#include <cstdint>

namespace hearth {

/// Memory of the process now, and its peak so far (VmRSS, VmHWM), in bytes.
uint64_t resident_bytes();
uint64_t peak_resident_bytes();

/// Makes the allocator predictable: few arenas for any number of threads; large blocks are mapped,
/// and unmapped as soon as they are freed. Call before starting threads.
void limit_allocator();
/// Returns freed memory to the system, so that `resident_bytes` counts only used memory.
void release_freed_memory();

}  // namespace hearth
