// The memory that a schedule takes at a place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "budget/memory_line.h"
#include "setup/run_devices.h"

namespace hearth {

uint64_t arena_bytes(const Schedule& schedule, Place place);
ScratchNeed scratch_of(const Schedule& schedule, Place place);

/// The content of a place's arena at its peak, by use, and the gaps between buffers. `bounds`: the
/// source of the sizes.
std::vector<MemoryLine> arena_lines(const Schedule& schedule, Place place,
                                    const std::string& bounds);

/// Bytes of scratch memory of a place's compute streams.
uint64_t scratch_bytes(const ScratchNeed& need, const ComputePlace& place);
/// Of the stream on the host that sums the gradients of several ranks.
uint64_t collective_scratch_bytes(const ScratchNeed& need);

/// Workers of a place's compute streams together.
int workers_of(const ComputePlace& place);

/// Bytes of a schedule and its executor, in blocks of the allocator.
uint64_t schedule_bytes(const Schedule& schedule);
/// Of a device to which weights travel, for each schedule: a table that shows the copies that are there.
uint64_t travel_table_bytes(const ParameterTable& table);

}  // namespace hearth
