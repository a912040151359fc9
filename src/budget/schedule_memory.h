// What a list of tasks takes of the memory of a place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "budget/run_plan.h"

namespace hearth {

/// Name of the line of a list's arena, which a session measures; what it holds stands behind a colon.
std::string name_of_list(const Schedule& list);

uint64_t arena_bytes(const Schedule& list, Place place);
ScratchNeed scratch_of(const Schedule& list, Place place);

/// What lies in the arena of a place when it is fullest, by use, and what is between its buffers.
/// bounds: where the sizes come from.
std::vector<MemoryLine> arena_lines(const Schedule& list, Place place, const std::string& bounds);

/// Of the compute stream of a place.
uint64_t scratch_bytes(const ScratchNeed& need, const PlanPlace& place, int workers);

/// Bytes of a list and of what an executor adds to it, in blocks of the allocator.
uint64_t list_bytes(const Schedule& list);

}  // namespace hearth
