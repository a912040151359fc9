// The peak of a place: the sum of its lines.
#pragma once

#include <cstdint>
#include <vector>

#include "budget/memory_line.h"

namespace hearth {

uint64_t sum_of(const std::vector<MemoryLine>& lines);

/// Sets the peak of the host to the sum of its lines, and to `before` at least: what the process took
/// before the run. What the other lines lack of that is a line of its own (MemoryUse::opening), which
/// replaces the one that was there.
void set_peak(PlaceLines& host, uint64_t before);

/// The bytes of all lines of a use.
uint64_t bytes_of(const PlaceLines& place, MemoryUse use);

}  // namespace hearth
