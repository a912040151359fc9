#include "comm/shard_tree.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {
namespace {

// Pushes a node, joins halves as long as there are some, and returns the height before.
size_t push_node(int32_t shards, std::vector<ShardRange>& stack, ShardRange node) {
  stack.push_back(node);
  const size_t height = stack.size();
  while (stack.size() >= 2 && are_halves(shards, stack[stack.size() - 2], stack.back())) {
    const int32_t end = stack.back().end;
    stack.pop_back();
    stack.back().end = end;
  }
  return height;
}

}  // namespace

ShardMap::ShardMap(int32_t shards, int32_t ranks) : shards_(shards), ranks_(ranks) {
  HEARTH_CHECK(shards > 0 && ranks > 0 && shards % ranks == 0,
               "shards: the number of ranks must divide their number");
}

bool are_halves(int32_t shards, ShardRange left, ShardRange right) {
  // In 64 bits: a node of the tree may end behind the last shard.
  const int64_t size = left.end - left.begin;
  if (size <= 0 || (size & (size - 1)) != 0 || left.begin % (2 * size) != 0) return false;
  return left.end == right.begin && right.end == std::min<int64_t>(shards, left.begin + 2 * size);
}

std::vector<ShardRange> subtrees_of(int32_t shards, ShardRange range) {
  HEARTH_CHECK(range.begin >= 0 && range.begin <= range.end && range.end <= shards,
               "shards: a range outside of them");
  std::vector<ShardRange> stack;
  for (int32_t shard = range.begin; shard < range.end; ++shard) {
    push_node(shards, stack, {shard, shard + 1});
  }
  return stack;
}

int32_t most_partial_sums(int32_t shards, ShardRange range) {
  std::vector<ShardRange> stack;
  size_t most = 0;
  for (int32_t shard = range.begin; shard < range.end; ++shard) {
    most = std::max(most, push_node(shards, stack, {shard, shard + 1}));
  }
  return static_cast<int32_t>(most);
}

}  // namespace hearth
