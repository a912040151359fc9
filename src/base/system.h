// What the system says of this process and this machine.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

/// Memory of the process now, and its peak so far (VmRSS, VmHWM), in bytes.
uint64_t resident_bytes();
/// The part of it that is pages of files: the program and its libraries, as far as they have run.
uint64_t resident_file_bytes();
uint64_t peak_resident_bytes();

/// The size of the largest cache of the processor, at most 64 MiB; 32 MiB if the system does not say.
uint64_t largest_cache_bytes();

/// The first line of a file of /proc or /sys, at most 1,000 bytes; empty if there is none.
std::string first_line_of_system_file(const std::string& path);

/// Makes the allocator predictable: few arenas for any number of threads; large blocks are mapped,
/// and unmapped as soon as they are freed. Call before starting threads.
void limit_allocator();
/// Returns freed memory to the system, so that `resident_bytes` counts only used memory.
void release_freed_memory();

/// The machine's name, "localhost" if it has none.
std::string own_host_name();

}  // namespace hearth
