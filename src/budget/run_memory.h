// What a run takes of the host besides parameters, activations and scratch: its tables, saves, result and
// own objects. Each counts one of these alone. The plan adds up those that exist at the same time
// (docs/planning.md, "Memory").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "budget/plan.h"

namespace hearth {

/// What the run keeps of each tensor once it has begun: the table of its session, of a rank that is
/// another thread its plan's, too, digests, and which tensors had a gradient. Rank 0 has a view of what
/// others own.
uint64_t table_bytes(const PlanSubject& subject, const RankShards& shards);

/// What a save takes beside the copies that it reads in place: it runs under the steps, so this is
/// memory of its own. Rank 0 lists all tensors, another one its own.
uint64_t saving_bytes(const PlanSubject& subject, const RankShards& shards);

/// What writing the result takes. A checkpoint is opened again, and an adapter has the digest of its base.
/// Of several ranks the first one writes.
uint64_t result_bytes(const PlanSubject& subject, const RankShards& shards);

/// Runs that need more objects than others.
struct KindOfRun {
  uint64_t bytes = 0;
  const char* name;  // in the basis of the line
};
std::vector<KindOfRun> kinds_of(const PlanSubject& subject, const RankShards& shards);

/// What a run takes when it reads its weights, which is its fullest moment, besides all other lines:
/// objects of the run, stacks, and code of libraries that runs for the first time. Measured of tiny
/// models of four families (docs/benchmarks/plan.md). `far_places`: devices whose memory the host does
/// not reach.
uint64_t running_bytes(const PlanSubject& subject, const RankShards& shards, size_t far_places);

}  // namespace hearth
