// The trained tensors of a step that has several logical shards, or several ranks. Here gradients are
// summed by the tree of shards, and move between ranks together with weights and moments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/place.h"
#include "comm/owners.h"
#include "comm/rank_team.h"
#include "comm/reduce.h"
#include "layers/rank_work.h"
#include "plan/schedule.h"

namespace hearth {

/// The owners of all blocks, balanced by trained elements. Ranks that share the experts compute with
/// their own; with all other blocks every rank does.
Owners owners_of(const ParameterTable& table, const RankShards& shards);

/// Tells a table which blocks this rank owns, and which it has copies of: those that it computes with.
/// Rank 0, which evaluates and saves, has all.
void own_blocks(ParameterTable& table, const RankShards& shards);

/// How many gradients a rank puts aside while it adds up its shards. Each is as large as the arena of
/// the gradients.
int32_t gradients_aside(const RankShards& shards);

/// The gradients of the experts of this rank, which it has once more for every other rank of its group,
/// since each rank's shards are added up apart. 0 if ranks do not share experts.
size_t guest_gradient_bytes(const ParameterTable& table, const RankShards& shards);

/// How many times this rank has them: for each other rank of its group, by position, the gradients and
/// those that are put aside; for itself 0.
std::vector<int32_t> guest_gradients(const RankShards& shards);

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
    /// By position in the group that shares the experts, this rank's left out: memory of
    /// guest_gradient_bytes, for the gradients and then for those put aside.
    std::vector<std::vector<std::byte*>> guests = {};
  };
  /// `table` is bound, and `team` is null with one rank. Both must outlive the object.
  SharedParameters(const RankShards& shards, ParameterTable& table, Memory memory, RankTeam* team);

  ExpertRanks experts() const override { return shards_.experts(); }
  void exchange(Stream& stream, RowsGo go, std::span<const SentRows> out,
                std::span<const ReceivedRows> in) override;
  View gradient_for(int32_t guest, View own) const override;
  void end_shard(const OpSet& ops, Stream& stream, Place place, int32_t shard) override;
  void reduce(const OpSet& ops, Stream& stream, std::span<const BlockId> blocks) override;
  void gather_norms(View norms) override;
  void give(Stream& stream, std::span<const BlockId> blocks) override;

  /// All ranks call these, between steps. `spread`: weights and moments from rank 0 to all ranks.
  /// `collect`: what only owners have since, to rank 0.
  void spread();
  void collect();

 private:
  /// Gradients of a block of an expert, and where they are among a guest's.
  struct ExpertGradients {
    BlockId block;
    View own;
    size_t offset;  // bytes
  };
  bool owns(BlockId block) const { return owners_.owner(block) == shards_.rank; }
  bool uses(BlockId block) const { return owners_.uses(block, shards_.rank); }
  std::vector<BlockId> trained_blocks() const;
  /// Of a block: what each shard of this rank, or of its group, has come to.
  std::vector<PartialSum> sums_of(const OpSet& ops, BlockId block) const;
  std::vector<View> aside_of(Place place, const View& gradient) const;
  ShardRange range_of_guest(int32_t guest) const;

  const RankShards shards_;
  ParameterTable& table_;
  const Memory memory_;
  RankTeam* const team_;
  const Owners owners_;
  size_t guest_bytes_ = 0;                // guest_gradient_bytes
  std::vector<ExpertGradients> experts_;  // by address; empty: ranks do not share experts
  struct Channel {
    std::unique_ptr<Communicator> comm;  // of the ranks that share experts
    CommLabel label{-1, 0};              // of its next operation
  };
  std::array<Channel, kRowsGo> channels_;
};

}  // namespace hearth
