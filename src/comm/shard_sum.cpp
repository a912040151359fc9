#include "comm/shard_sum.h"

namespace hearth {

ShardSum::ShardSum(const OpSet& ops, int32_t shards, ShardRange range,
                   std::span<const View> accumulators)
    : ops_(ops),
      shards_(shards),
      range_(range),
      accumulators_(accumulators.begin(), accumulators.end()) {
  HEARTH_CHECK(static_cast<int32_t>(accumulators_.size()) >= most_partial_sums(shards, range),
               "shard sum: too few accumulators");
}

View ShardSum::accumulator(int32_t shard) const {
  const int32_t next = stack_.empty() ? range_.begin : stack_.back().range.end;
  HEARTH_CHECK(shard == next && shard < range_.end, "shard sum: shards come in order");
  return accumulators_[stack_.size()];
}

void ShardSum::close(Stream& stream, int32_t shard) {
  const View next = accumulator(shard);
  push_partial_sum(ops_, stream, shards_, stack_, {{shard, shard + 1}, next}, {},
                   [&](const View& free) { ops_.clear(stream, free); });
}

std::span<const PartialSum> ShardSum::sums() const {
  HEARTH_CHECK(!stack_.empty() && stack_.back().range.end == range_.end,
               "shard sum: shards are missing");
  return stack_;
}

}  // namespace hearth
