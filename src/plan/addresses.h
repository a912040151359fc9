// Where the buffers of a schedule lie in its arena.
#pragma once

#include <vector>

#include "plan/schedule.h"

namespace hearth {

/// Gives every buffer an address so that buffers alive at the same time do not overlap. Returns the
/// arena's size. Time and memory grow with the number of buffers, not with its square: long lists
/// have a hundred thousand.
size_t assign_addresses(std::vector<Buffer>& buffers);

/// Whether buffers that are alive at the same time overlap.
bool live_buffers_overlap(const std::vector<Buffer>& buffers);

}  // namespace hearth
