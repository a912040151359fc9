// Counts what takes memory from the heap, libraries included: malloc and its relatives, and with them
// operator new. Needs glibc, and is not there under a sanitizer, which has a malloc of its own.
#pragma once

#include <cstdint>

namespace hearth::test {

/// Calls of all threads since the program began.
int64_t heap_calls();

}  // namespace hearth::test
