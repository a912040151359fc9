// Which rank keeps which block: its master, moments and final gradient, and which ranks compute it.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/shard_tree.h"
#include "model/parameter_table.h"

namespace hearth {

/// A rank that computes with a block, and the shards whose gradient it computes.
struct BlockShare {
  int32_t rank = 0;
  ShardRange shards;
};

/// The same on every rank: sizes and order of messages follow from it. By block.
struct Owners {
  int32_t shards = 1;
  std::vector<int32_t> rank_of;
  /// In the order of shards, which they cover once. The owner of a block is one of these ranks.
  std::vector<std::vector<BlockShare>> shares_of;

  int32_t owner(BlockId block) const { return rank_of[static_cast<size_t>(block)]; }
  const std::vector<BlockShare>& shares(BlockId block) const {
    return shares_of[static_cast<size_t>(block)];
  }
  /// The shares of a block cut into subtrees, in the order of shards.
  std::vector<BlockShare> subtrees(BlockId block) const;
  /// Whether a rank computes with a block.
  bool uses(BlockId block, int32_t rank) const;
  /// The ranks that compute with a block, each once, by number.
  std::vector<int32_t> users(BlockId block) const;
};

/// A block that every rank computes with, each for its own shards (`dp`, and the dense blocks of
/// `ep`).
std::vector<BlockShare> shares_of_all(const ShardMap& map);
/// An expert that in each group of ranks that share experts is computed by the rank at `position`, for
/// the shards of the whole group (`ep`, `hybrid-ep`). A rank has several shares if the ranks of its group
/// are no neighbours.
std::vector<BlockShare> shares_of_expert(const ShardMap& map, const ExpertDomains& domains,
                                         int32_t position);

struct OwnedBlock {
  int64_t bytes = 0;  // what its owner keeps
  std::vector<BlockShare> shares;
  int32_t layer = -1;
  /// Of frozen weights that its owner alone keeps (RankShards::fetched_from).
  int64_t frozen = 0;
};

/// An expert that in each group is computed by the rank at `position`, for the shards of the attention
/// ranks of the group (`zebra`).
std::vector<BlockShare> shares_of_role(const RankShards& shards, int32_t position);

/// Whether a rank keeps no weights of a block that it computes with: an expert that another rank owns,
/// in a layer whose experts are fetched (RankShards::fetched_from).
bool is_fetched(const ParameterTable& table, const Owners& owners, const RankShards& shards,
                BlockId block, int32_t rank);
/// Whether that holds of any rank.
bool is_sent(const ParameterTable& table, const Owners& owners, const RankShards& shards,
             BlockId block);

/// Whole blocks, balanced by bytes. Blocks that one rank alone computes are that rank's. The others
/// go layer by layer, the largest first, each to the rank with the fewest bytes of that layer among
/// those that compute with it; a tie goes to the fewest bytes overall, then to the first. So the
/// gradients of a layer, which travel together, use all links in both directions. Frozen blocks
/// come after all others, in the same way, and change nothing of theirs. A pure function of its
/// arguments. `ranks`: of the run; the first may be all that compute shards.
Owners choose_owners(int32_t shards, int32_t ranks, std::vector<OwnedBlock> blocks);

}  // namespace hearth
