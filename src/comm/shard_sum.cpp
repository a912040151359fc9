#include "comm/shard_sum.h"

namespace hearth {

ShardSum::ShardSum(const OpSet& ops, int32_t shards, ShardRange range, View gradient,
                   std::span<const View> aside)
    : ops_(ops), shards_(shards), range_(range), gradient_(gradient), aside_(aside) {
  HEARTH_CHECK(std::ssize(aside) + 1 >= most_partial_sums(shards, range),
               "shard sum: too few views to put sums aside");
}

void ShardSum::end(Stream& stream, int32_t shard) const {
  HEARTH_CHECK(shard >= range_.begin && shard < range_.end, "shard sum: a shard of another rank");
  size_t before = subtrees_of(shards_, {range_.begin, shard}).size();
  const size_t after = subtrees_of(shards_, {range_.begin, shard + 1}).size();
  for (; before >= after; --before) ops_.add(stream, aside_[before - 1], gradient_, gradient_);
  if (shard + 1 == range_.end) return;
  ops_.cast(stream, gradient_, aside_[before]);
  ops_.clear(stream, gradient_);
}

std::vector<PartialSum> ShardSum::sums() const {
  std::vector<PartialSum> sums;
  for (const ShardRange& range : subtrees_of(shards_, range_)) {
    sums.push_back({range, range.end == range_.end ? gradient_ : aside_[sums.size()]});
  }
  return sums;
}

std::vector<PartialSum> join_partial_sums(const OpSet& ops, Stream& stream, int32_t shards,
                                          std::span<const PartialSum> sums) {
  std::vector<PartialSum> joined;
  for (const PartialSum& next : sums) {
    joined.push_back(next);
    while (joined.size() >= 2 &&
           are_halves(shards, joined[joined.size() - 2].range, joined.back().range)) {
      const PartialSum right = joined.back();
      joined.pop_back();
      PartialSum& left = joined.back();
      left.range.end = right.range.end;
      ops.add(stream, left.sum, right.sum, left.sum);
      ops.clear(stream, right.sum);
    }
  }
  return joined;
}

}  // namespace hearth
