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

/// A stack of partial sums, in which neighbours that are halves of a node are added at once, as a
/// binary counter carries. Of one tensor, or of any contiguous run of them. Owns no memory.
class ShardSum {
 public:
  /// `accumulators`: at least most_partial_sums(shards, range) views of one shape and type,
  /// contiguous and zero. They must outlive the sum.
  ShardSum(const OpSet& ops, int32_t shards, ShardRange range, std::span<const View> accumulators);

  /// Where the micro-batches of a shard are added. Shards come in order, each once.
  View accumulator(int32_t shard) const;
  /// The shard is complete: adds what the tree has whole, and clears what that makes free. Takes the
  /// scratch of OpTable::row_scratch.
  void close(Stream& stream, int32_t shard);
  /// After the last shard: the sums of subtrees_of(shards, range), in order, in the first
  /// accumulators. The others are zero.
  std::span<const PartialSum> sums() const;

 private:
  const OpSet& ops_;
  const int32_t shards_;
  const ShardRange range_;
  const std::vector<View> accumulators_;
  std::vector<PartialSum> stack_;
};

/// Puts a partial sum on a stack and adds as long as its two last are halves of a node: left = left +
/// right, or, of all shards, `total` = left + right. Calls `freed` with each right side. With one
/// partial sum of all shards, copies it to `total` if that is another view. `total`: empty: left.
template <class Freed>
void push_partial_sum(const OpSet& ops, Stream& stream, int32_t shards,
                      std::vector<PartialSum>& stack, PartialSum next, View total,
                      const Freed& freed) {
  const auto is_all = [&](const ShardRange& range) {
    return total && range == ShardRange{0, shards};
  };
  stack.push_back(next);
  while (stack.size() >= 2 &&
         are_halves(shards, stack[stack.size() - 2].range, stack.back().range)) {
    const PartialSum right = stack.back();
    stack.pop_back();
    PartialSum& left = stack.back();
    left.range.end = right.range.end;
    const View sum = is_all(left.range) ? total : left.sum;
    ops.add(stream, left.sum, right.sum, sum);
    if (sum.data != right.sum.data) freed(right.sum);
    if (sum.data != left.sum.data) freed(left.sum);
    left.sum = sum;
  }
  if (is_all(stack.back().range) && stack.back().sum.data != total.data) {
    ops.cast(stream, stack.back().sum, total);
    freed(stack.back().sum);
    stack.back().sum = total;
  }
}

}  // namespace hearth
