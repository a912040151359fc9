// What a schedule takes of the memory of a place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "budget/memory_line.h"
#include "setup/run_devices.h"

namespace hearth {

uint64_t arena_bytes(const Schedule& schedule, Place place);
ScratchNeed scratch_of(const Schedule& schedule, Place place);

/// What lies in the arena of a place when it is fullest, by use, and what is between its buffers.
/// bounds: where the sizes come from.
std::vector<MemoryLine> arena_lines(const Schedule& schedule, Place place,
                                    const std::string& bounds);

/// Of the compute stream of a place.
uint64_t scratch_bytes(const ScratchNeed& need, const ComputePlace& place, int workers);

/// Bytes of a schedule and of what an executor adds to it, in blocks of the allocator.
uint64_t schedule_bytes(const Schedule& schedule);

}  // namespace hearth
