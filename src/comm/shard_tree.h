// The binary tree by which the logical shards of a step are added, and how shards lie on ranks.
//
// A node of size 2^l covers the shards [i 2^l, (i + 1) 2^l), cut at the number of shards V, which
// need not be a power of two. The sum of a node is that of its left half plus that of its right half.
// So the bits of a step's sum depend on V alone, not on which rank holds which shard:
//
//   V = 5:   (((0 + 1) + (2 + 3)) + 4)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/expert_domains.h"
#include "comm/expert_wire.h"
#include "model/expert_ranks.h"

namespace hearth {

/// Logical shards [begin, end).
struct ShardRange {
  int32_t begin = 0, end = 0;
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

/// Rank r of N has the shards [r V/N, (r + 1) V/N). N divides V.
class ShardMap {
 public:
  /// A bug if `ranks` does not divide `shards`.
  ShardMap(int32_t shards, int32_t ranks);
  int32_t shards() const { return shards_; }
  int32_t ranks() const { return ranks_; }
  /// Of the ranks [first, last).
  ShardRange of(int32_t first, int32_t last) const {
    return {first * (shards_ / ranks_), last * (shards_ / ranks_)};
  }
  ShardRange of(int32_t rank) const { return of(rank, rank + 1); }

 private:
  int32_t shards_, ranks_;
};

/// Of one rank: which shards of a step it computes.
struct RankShards {
  int32_t shards = 1, ranks = 1, rank = 0;
  bool are_threads = true;  // the ranks, of one process
  /// Ranks that share the experts; divides `ranks`. 1: each rank computes all experts.
  int32_t expert_ranks = 1;
  /// The first ranks, which compute the shards with all but the experts, while the others have nothing but
  /// experts. 0: every rank computes shards. Groups divide both evenly, in the order of ranks.
  int32_t attention_ranks = 0;
  /// By layer: how many experts each rank without shards gives to the attention ranks. Empty: none.
  std::vector<int32_t> expert_shift = {};
  /// Which ranks share the experts, by level (comm/expert_domains.h). Empty: neighbours.
  std::vector<DomainLevel> levels = {};
  /// Whether rows, gradients and weights go from the memory of one rank's device to that of another
  /// (comm/device_world.h): each rank has one device, and all that it computes with there. Not with
  /// attention ranks.
  bool direct = false;
  /// How weights of trained experts travel. Not dense: `levels` are not empty.
  ExpertWire wire = {};
  /// In layers from this one on, ranks keep only the experts that they own: the owners send them to the
  /// other ranks that compute with them, before each use (layers/fetched_experts.h). But rank 0 keeps
  /// all. -1: every rank keeps what it computes with.
  int32_t fetched_from = -1;
  /// Whether any layer is fetched, and this one: some expert must be at several ranks.
  bool fetches() const { return fetched_from >= 0 && ranks > expert_ranks; }
  bool fetches(int32_t layer) const { return fetches() && layer >= fetched_from; }
  ExpertDomains domains() const {
    return levels.empty() ? ExpertDomains::of_neighbours(ranks, expert_ranks)
                          : ExpertDomains(levels);
  }
  void share(const ExpertDomains& domains) {
    levels = domains.levels();
    expert_ranks = domains.sharing();
  }
  /// Groups of ranks that have each expert once.
  int32_t groups() const { return ranks / expert_ranks; }
  int32_t attention_of_group() const { return attention_ranks / groups(); }
  int32_t experts_of_group() const { return expert_ranks - attention_of_group(); }
  /// The position of a rank in its group.
  int32_t position_of(int32_t of) const {
    if (attention_ranks == 0) return domains().position(of);
    const int32_t attention = attention_of_group();
    return of < attention_ranks ? of % attention
                                : attention + (of - attention_ranks) % experts_of_group();
  }
  /// The rank at a position in the group of a rank. Rises with the position.
  int32_t member(int32_t of, int32_t position) const {
    if (attention_ranks == 0) return domains().member(of, position);
    const int32_t attention = attention_of_group(), experts = experts_of_group();
    const int32_t group = of < attention_ranks ? of / attention : (of - attention_ranks) / experts;
    return position < attention ? group * attention + position
                                : attention_ranks + group * experts + position - attention;
  }
  /// The group of this rank, whatever layer: which ranks it has, not which experts these have.
  ExpertRanks group() const { return {expert_ranks, position_of(rank), attention_of_group()}; }
  ExpertRanks experts(int32_t layer) const {
    ExpertRanks of = group();
    if (!expert_shift.empty()) {
      of.moved = expert_shift[static_cast<size_t>(layer)] * experts_of_group();
    }
    return of;
  }
  /// Whether this rank computes rows of another one of its group, in any layer.
  bool serves(int32_t guest) const {
    ExpertRanks of = group();
    for (const int32_t moved : expert_shift) of.moved += moved;
    return of.serves(guest);
  }
  /// How many ranks compute shards, the first ones; and whether this one does.
  int32_t computing() const { return attention_ranks > 0 ? attention_ranks : ranks; }
  bool computes() const { return rank < computing(); }
  /// The rank at a position in this rank's group.
  int32_t member(int32_t position) const { return member(rank, position); }
  ShardMap map() const { return ShardMap(shards, computing()); }
  ShardRange range() const { return computes() ? map().of(rank) : ShardRange{}; }
  int32_t count() const { return shards / computing(); }
  friend bool operator==(const RankShards&, const RankShards&) = default;
};

/// Whether two neighbours are the halves of a node of the tree over `shards`.
bool are_halves(int32_t shards, ShardRange left, ShardRange right);

/// The largest nodes of the tree within a range, in order: up to 2 log2(V). What a rank with these
/// shards can add by itself.
std::vector<ShardRange> subtrees_of(int32_t shards, ShardRange range);

/// Partial sums that are there at one time, at most, while the shards of a range are added in order.
int32_t most_partial_sums(int32_t shards, ShardRange range);

}  // namespace hearth
