// Where the buffers of a schedule lie in its arenas.
#pragma once

#include <vector>

#include "plan/schedule.h"

namespace hearth {

/// Gives every buffer an address in the arena of its place so that buffers alive at the same time do
/// not overlap. Returns the sizes of the arenas of places 0 to `places` - 1. Time and memory grow with the number of buffers, not with its square: long lists
/// have a hundred thousand.
std::vector<size_t> assign_addresses(std::vector<Buffer>& buffers, size_t places);

/// Whether buffers of one place that are alive at the same time overlap.
bool live_buffers_overlap(const std::vector<Buffer>& buffers);

}  // namespace hearth
