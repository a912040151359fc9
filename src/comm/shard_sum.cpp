#include "comm/shard_sum.h"

#include <algorithm>

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

void push_partial_sum(const OpSet& ops, Stream& stream, int32_t shards,
                      std::vector<PartialSum>& stack, const PartialSum& next, const View& total) {
  const ShardRange all{0, shards};
  const auto is_total = [&](const PartialSum& sum) { return total && sum.range == all; };
  stack.push_back(next);
  while (stack.size() >= 2 &&
         are_halves(shards, stack[stack.size() - 2].range, stack.back().range)) {
    const PartialSum right = stack.back();
    stack.pop_back();
    PartialSum& left = stack.back();
    left.range.end = right.range.end;
    const View sum = is_total(left) ? total : left.sum;
    ops.add(stream, left.sum, right.sum, sum);
    left.sum = sum;
  }
  if (is_total(stack.back()) && stack.back().sum.data != total.data) {  // of one partial sum
    ops.cast(stream, stack.back().sum, total);
  }
}

std::vector<PartialSum> join_partial_sums(const OpSet& ops, Stream& stream, int32_t shards,
                                          std::span<const PartialSum> sums) {
  std::vector<PartialSum> joined;
  for (const PartialSum& next : sums) push_partial_sum(ops, stream, shards, joined, next);
  for (const PartialSum& each : sums) {
    const bool stays = std::ranges::any_of(
        joined, [&](const PartialSum& of) { return of.sum.data == each.sum.data; });
    if (!stays) ops.clear(stream, each.sum);
  }
  return joined;
}

std::vector<PartialSum> joined_partial_sums(int32_t shards, std::span<const PartialSum> sums) {
  std::vector<PartialSum> joined;
  for (const PartialSum& next : sums) {
    joined.push_back(next);
    while (joined.size() >= 2 &&
           are_halves(shards, joined[joined.size() - 2].range, joined.back().range)) {
      joined[joined.size() - 2].range.end = joined.back().range.end;
      joined.pop_back();
    }
  }
  return joined;
}

}  // namespace hearth
