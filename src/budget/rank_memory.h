// The memory of the other ranks of a run, in the plan of rank 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "budget/plan.h"

namespace hearth {

/// Whether a rank that is a thread has such memory for itself; else the process has it.
bool is_of_rank(MemoryUse use);

/// What a rank takes, by place, of its plan. A thread takes lines of its own, `is_process` all.
std::vector<PlaceLines> memory_of_rank(const Plan& plan, bool is_process);

/// Ranks that are threads read their weights one after the other (Session::read_weights), so the process
/// has the largest buffers of reading of them. Before take_rank_memory.
void share_reading(Plan& plan, const Plan& other);

/// Adds the memory of ranks 1 to N - 1 to the plan of rank 0. If they are threads, they are a line of
/// its host.
void take_rank_memory(Plan& plan, std::vector<std::vector<PlaceLines>> others);

/// What devices of other ranks lack: "rank 1: the plan needs ...". Empty: nothing.
std::string what_ranks_miss(const Plan& plan);

/// "memory" of all ranks in plans: the places of rank 0 as they are given, which may have measurements.
/// With several ranks they are named 0/host, 1/virtual:0. `measured`: bytes of the other ranks, by rank
/// from 1 on; empty: not known.
std::vector<PlaceLines> memory_by_rank(const Plan& plan, std::vector<PlaceLines> of_leader,
                                       const std::vector<uint64_t>& measured = {});

}  // namespace hearth
