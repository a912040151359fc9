// The memory that the calling thread holds through operator new, to hold parsers to their bounds.
#pragma once

#include <cstdint>

namespace hearth::test {

void start_counting();   // peak := what is held now
int64_t counted_peak();  // most that was held since, above what was held at the start

/// The n-th allocation from now on fails, on whatever thread comes to it (0: none does).
void fail_allocation(int64_t n);
/// Allocations of all threads since the last call of fail_allocation, with one that failed.
int64_t allocations();

}  // namespace hearth::test
