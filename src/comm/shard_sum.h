// Adds the gradients of a rank's logical shards by the tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/stream.h"
#include "comm/shard_tree.h"
#include "ops/op_set.h"

namespace hearth {

/// A partial sum: of the shards `range`, at `sum`.
struct PartialSum {
  ShardRange range;
  View sum;
};

/// Adds the gradients of a rank's shards, one after the other, as a binary counter carries. The
/// micro-batches of a shard add to the gradient. The end of a shard adds the partial sums before it
/// that make a node with it, then puts the sum aside and clears the gradient for the next shard.
/// After the last shard the sum stays in the gradient. Of one tensor, or of any contiguous run of
/// them. Owns no memory, and has no state: what the end of a shard does follows from its number.
class ShardSum {
 public:
  /// `aside`: at least most_partial_sums(shards, range) - 1 views of the gradient's shape and type,
  /// all contiguous. What they hold before the first shard does not matter.
  ShardSum(const OpSet& ops, int32_t shards, ShardRange range, View gradient,
           std::span<const View> aside);

  /// The micro-batches of a shard of the range are in the gradient. Shards end in order, each once.
  /// Takes the scratch of OpTable::row_scratch.
  void end(Stream& stream, int32_t shard) const;
  /// After the last shard: the sums of subtrees_of(shards, range), in order. The last is the gradient.
  std::vector<PartialSum> sums() const;

 private:
  const OpSet& ops_;
  const int32_t shards_;
  const ShardRange range_;
  const View gradient_;
  const std::span<const View> aside_;
};

/// Puts a partial sum on a stack, in the order of shards, and adds as long as its two last are halves of
/// a node of the tree over `shards`: left = left + right. If `total` is given, the sum of all shards
/// goes there. Takes the scratch of OpTable::row_scratch.
void push_partial_sum(const OpSet& ops, Stream& stream, int32_t shards,
                      std::vector<PartialSum>& stack, const PartialSum& next,
                      const View& total = {});

/// Joins neighbouring partial sums, in the order of shards, as far as they are halves of nodes of the
/// tree over `shards`: the left one takes the sum, and the right one is cleared. What remains are the
/// subtrees_of what they cover together. Takes the scratch of OpTable::row_scratch.
std::vector<PartialSum> join_partial_sums(const OpSet& ops, Stream& stream, int32_t shards,
                                          std::span<const PartialSum> sums);
/// What remained when they were joined.
std::vector<PartialSum> joined_partial_sums(int32_t shards, std::span<const PartialSum> sums);

}  // namespace hearth
