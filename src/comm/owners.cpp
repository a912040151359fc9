#include "comm/owners.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace hearth {

std::vector<BlockShare> Owners::subtrees(BlockId block) const {
  std::vector<BlockShare> all;
  for (const BlockShare& share : shares(block)) {
    for (const ShardRange& range : subtrees_of(shards, share.shards)) {
      all.push_back({share.rank, range});
    }
  }
  return all;
}

bool Owners::uses(BlockId block, int32_t rank) const {
  const std::vector<BlockShare>& all = shares(block);
  return std::any_of(all.begin(), all.end(),
                     [&](const BlockShare& share) { return share.rank == rank; });
}

std::vector<int32_t> Owners::users(BlockId block) const {
  std::vector<int32_t> ranks;
  for (const BlockShare& share : shares(block)) ranks.push_back(share.rank);
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<BlockShare> shares_of_all(const ShardMap& map) {
  std::vector<BlockShare> shares;
  for (int32_t rank = 0; rank < map.ranks(); ++rank) shares.push_back({rank, map.of(rank)});
  return shares;
}

std::vector<BlockShare> shares_of_expert(const ShardMap& map, const ExpertDomains& domains,
                                         int32_t position) {
  HEARTH_CHECK(domains.ranks() == map.ranks() && position >= 0 && position < domains.sharing(),
               "owners: expert domains of other ranks");
  std::vector<BlockShare> shares;
  for (int32_t rank = 0; rank < map.ranks(); ++rank) {
    const int32_t computes = domains.member(rank, position);
    if (!shares.empty() && shares.back().rank == computes) {
      shares.back().shards.end = map.of(rank).end;
    } else {
      shares.push_back({computes, map.of(rank)});
    }
  }
  return shares;
}

std::vector<BlockShare> shares_of_role(const RankShards& shards, int32_t position) {
  const ShardMap map = shards.map();
  const int32_t attention = shards.attention_of_group();
  std::vector<BlockShare> shares;
  for (int32_t first = 0; first < shards.attention_ranks; first += attention) {
    shares.push_back({shards.member(first, position), map.of(first, first + attention)});
  }
  return shares;
}

bool is_fetched(const ParameterTable& table, const Owners& owners, const RankShards& shards,
                BlockId block, int32_t rank) {
  const Block& of = table.block(block);
  return of.kind == BlockKind::expert && shards.fetches(of.layer) && rank > 0 &&
         owners.owner(block) != rank && owners.uses(block, rank);
}

bool is_sent(const ParameterTable& table, const Owners& owners, const RankShards& shards,
             BlockId block) {
  const std::vector<BlockShare>& shares = owners.shares(block);
  return std::any_of(shares.begin(), shares.end(), [&](const BlockShare& share) {
    return is_fetched(table, owners, shards, block, share.rank);
  });
}

/// Owners of blocks, balanced by what a member of theirs counts. Where that is 0, owners that were chosen
/// before stay.
static void choose_evenly(const std::vector<OwnedBlock>& blocks, int64_t OwnedBlock::*bytes,
                          int32_t ranks, std::vector<int32_t>& rank_of) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t b) {
    const bool has_one = blocks[b].shares.size() == 1;
    return std::tuple(!has_one, blocks[b].layer, -(blocks[b].*bytes));
  });
  std::vector<int64_t> all(static_cast<size_t>(ranks)), of_layer;
  int32_t layer = 0;
  for (const size_t b : order) {
    const OwnedBlock& block = blocks[b];
    if (rank_of[b] >= 0 && block.*bytes == 0) continue;
    if (of_layer.empty() || block.layer != layer) of_layer.assign(all.size(), 0);
    layer = block.layer;
    const auto load = [&](const BlockShare& share) {
      const auto rank = static_cast<size_t>(share.rank);
      return std::tuple(of_layer[rank], all[rank], share.rank);
    };
    const int32_t owner = std::ranges::min_element(block.shares, {}, load)->rank;
    if (block.shares.size() > 1) of_layer[static_cast<size_t>(owner)] += block.*bytes;
    all[static_cast<size_t>(owner)] += block.*bytes;
    rank_of[b] = owner;
  }
}

Owners choose_owners(int32_t shards, int32_t ranks, std::vector<OwnedBlock> blocks) {
  Owners owners;
  owners.shards = shards;
  owners.rank_of.resize(blocks.size(), -1);
  for (const OwnedBlock& block : blocks) {
    int32_t next = 0;
    for (const BlockShare& share : block.shares) {
      HEARTH_CHECK(share.shards.begin == next && share.rank >= 0 && share.rank < ranks,
                   "owners: shares of a block cover its shards once, in order");
      next = share.shards.end;
    }
    HEARTH_CHECK(next == shards, "owners: shards without a rank");
  }

  choose_evenly(blocks, &OwnedBlock::bytes, ranks, owners.rank_of);
  choose_evenly(blocks, &OwnedBlock::frozen, ranks, owners.rank_of);
  for (OwnedBlock& block : blocks) owners.shares_of.push_back(std::move(block.shares));
  return owners;
}

}  // namespace hearth
