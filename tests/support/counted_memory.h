// Counts the memory that the calling thread holds through operator new, to check bounds.
#pragma once

#include <cstdint>

namespace hearth::test {

void start_counting();   // resets the peak to what is held now
int64_t counted_peak();  // peak since start_counting, above what was held then

/// Makes the n-th allocation from now fail, on any thread (0: none).
void fail_allocation(int64_t n);
/// Allocations of all threads since the last fail_allocation, the failed one included.
int64_t allocations();

}  // namespace hearth::test
