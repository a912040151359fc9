// Assigns addresses in arenas to the buffers of a schedule.
#pragma once

#include <vector>

#include "plan/schedule.h"

namespace hearth {

/// Gives every buffer an address in the arena of its place. Buffers that are live at the same time
/// do not overlap. Buffers of different lanes share no address, since that would make their streams
/// wait for each other. Returns the arena sizes of places 0 to `places` - 1. Time and memory grow
/// with the number of buffers, not with its square: a long schedule has a hundred thousand buffers.
std::vector<size_t> assign_addresses(std::vector<Buffer>& buffers, size_t places);

/// Whether two buffers of one place overlap while both are live.
bool live_buffers_overlap(const std::vector<Buffer>& buffers);

}  // namespace hearth
