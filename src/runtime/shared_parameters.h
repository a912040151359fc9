// The trained tensors of a step that has several logical shards, or several ranks. Here gradients are
// summed by the tree of shards, and move between ranks together with weights and moments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/place.h"
#include "comm/owners.h"
#include "comm/rank_team.h"
#include "comm/reduce.h"
#include "layers/rank_work.h"
#include "plan/schedule.h"

namespace hearth {

/// The owners of all blocks if every rank computes with all of them: balanced by trained elements.
Owners owners_of(const ParameterTable& table, const RankShards& shards);

/// Tells a table which blocks this rank owns.
void own_blocks(ParameterTable& table, const RankShards& shards);

/// How many gradients a rank puts aside while it adds up its shards. Each is as large as the arena of
/// the gradients.
int32_t gradients_aside(const RankShards& shards);

/// The memory of gradients on their way to this rank: for the largest reduce task of a schedule.
size_t staging_bytes(const Schedule& schedule, const ParameterTable& table,
                     const RankShards& shards);

/// One rank. Calls come from the rank's streams, and between steps from its main thread.
class SharedParameters : public RankWork {
 public:
  /// The caller owns all of it.
  struct Memory {
    std::vector<std::span<std::byte>> gradients;  // arena of the gradients, by place
    std::vector<std::vector<std::byte*>> aside;   // by place: gradients_aside of such arenas
    Bytes staging;
  };
  /// `table` is bound, and `team` is null with one rank. Both must outlive the object.
  SharedParameters(const RankShards& shards, ParameterTable& table, Memory memory, RankTeam* team);

  void end_shard(const OpSet& ops, Stream& stream, Place place, int32_t shard) override;
  void reduce(const OpSet& ops, Stream& stream, std::span<const BlockId> blocks) override;
  void gather_norms(View norms) override;
  void give(Stream& stream, std::span<const BlockId> blocks) override;

  /// All ranks call these, between steps. `spread`: weights and moments from rank 0 to all ranks.
  /// `collect`: what only owners have since, to rank 0.
  void spread();
  void collect();

 private:
  bool owns(BlockId block) const { return owners_.owner(block) == shards_.rank; }
  std::vector<BlockId> trained_blocks() const;

  const RankShards shards_;
  ParameterTable& table_;
  const Memory memory_;
  RankTeam* const team_;
  const Owners owners_;
};

}  // namespace hearth
