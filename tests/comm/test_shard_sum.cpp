#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "comm/shard_sum.h"
#include "support/all_op_sets.h"
#include "support/tensor.h"
#include "support/test_stream.h"

namespace hearth::test {
namespace {

using Ranges = std::vector<ShardRange>;

// The sum of a node by the definition: its left half plus its right half.
double tree_sum(const std::vector<double>& leaves, size_t begin, size_t size, std::string& form) {
  if (size == 1) {
    form += std::to_string(begin);
    return leaves[begin];
  }
  const size_t half = size / 2;
  if (begin + half >= leaves.size()) return tree_sum(leaves, begin, half, form);
  form += "(";
  const double left = tree_sum(leaves, begin, half, form);
  form += "+";
  const double right = tree_sum(leaves, begin + half, half, form);
  form += ")";
  return left + right;
}

size_t power_above(size_t n) {
  size_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace

TEST_CASE("shard tree: the form over shards that are no power of two") {
  std::string form;
  tree_sum({0, 0, 0, 0, 0}, 0, 8, form);
  CHECK(form == "(((0+1)+(2+3))+4)");
  CHECK(are_halves(5, {0, 4}, {4, 5}));
  CHECK_FALSE(are_halves(6, {0, 4}, {4, 5}));
  CHECK_FALSE(are_halves(8, {1, 2}, {2, 3}));
  CHECK_FALSE(are_halves(8, {0, 2}, {2, 3}));
  CHECK_FALSE(are_halves(8, {0, 2}, {4, 6}));
  CHECK(are_halves(15, {12, 14}, {14, 15}));
}

TEST_CASE("shard tree: subtrees of ranges") {
  CHECK(subtrees_of(8, {0, 8}) == Ranges{{0, 8}});
  CHECK(subtrees_of(8, {1, 7}) == Ranges{{1, 2}, {2, 4}, {4, 6}, {6, 7}});
  CHECK(subtrees_of(15, {3, 6}) == Ranges{{3, 4}, {4, 6}});
  CHECK(subtrees_of(15, {10, 15}) == Ranges{{10, 12}, {12, 15}});
  CHECK(subtrees_of(15, {0, 15}) == Ranges{{0, 15}});
  CHECK(subtrees_of(7, {2, 2}).empty());
  for (int32_t shards = 1; shards <= 64; ++shards) {
    const auto bound = static_cast<size_t>(2 * std::ceil(std::log2(shards)));
    for (int32_t begin = 0; begin < shards; ++begin) {
      for (int32_t end = begin + 1; end <= shards; ++end) {
        const Ranges trees = subtrees_of(shards, {begin, end});
        CHECK(trees.size() <= std::max<size_t>(1, bound));
        int32_t next = begin;
        for (const ShardRange& tree : trees) {
          CHECK(tree.begin == next);
          CHECK(subtrees_of(shards, tree) == Ranges{tree});  // one node
          next = tree.end;
        }
        CHECK(next == end);
        CHECK(most_partial_sums(shards, {begin, end}) <=
              static_cast<int32_t>(trees.size()) + static_cast<int32_t>(std::log2(shards)));
      }
    }
  }
  CHECK(most_partial_sums(8, {0, 8}) == 4);
  CHECK_THROWS_AS(ShardMap(8, 3), std::logic_error);
  CHECK(ShardMap(15, 5).of(1) == ShardRange{3, 6});
}

TEST_CASE("shard sum: the bits of the tree for every number of shards") {
  for (const OpSet* ops : all_op_sets()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      if (!ops->supports(dtype, dtype == DType::f64 ? Compute::f64 : Compute::f32)) continue;
      TestStream stream(*ops, 2, ops->row_scratch(1, 40));
      for (int32_t shards = 1; shards <= 17; ++shards) {
        std::vector<Tensor> leaves, room;
        for (int32_t s = 0; s < shards; ++s) {
          leaves.push_back(
              Tensor(dtype, 1, 40).fill_random("leaf " + std::to_string(s), std::pow(3.0, s % 7)));
        }
        const int32_t most = most_partial_sums(shards, {0, shards});
        std::vector<View> views;
        for (int32_t i = 0; i < most; ++i) {
          room.emplace_back(dtype, 1, 40);
          room.back().fill(0);
          views.push_back(room.back().view());
        }
        ShardSum sum(*ops, shards, {0, shards}, views);
        for (int32_t s = 0; s < shards; ++s) {
          const View to = sum.accumulator(s);
          for (int half = 0; half < 2; ++half) {  // two micro-batches of a shard
            ops->add(stream, to, std::as_const(leaves[static_cast<size_t>(s)]).view(), to);
          }
          CHECK_THROWS_AS(sum.accumulator(s + 1), std::logic_error);
          sum.close(stream, s);
        }
        REQUIRE(sum.sums().size() == 1);
        CHECK(sum.sums()[0].range == ShardRange{0, shards});
        int different = 0;
        for (int64_t c = 0; c < 40; ++c) {
          std::vector<double> column;
          for (const Tensor& leaf : leaves) column.push_back(2 * leaf.get(0, c));
          // f32 sums are rounded at each node: by the same recursion in f32.
          std::string form;
          double expected = 0;
          if (dtype == DType::f64) {
            expected = tree_sum(column, 0, power_above(column.size()), form);
          } else {
            std::vector<float> level(column.begin(), column.end());
            for (; level.size() > 1;) {
              std::vector<float> above;
              for (size_t i = 0; i < level.size(); i += 2) {
                above.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
              }
              level = above;
            }
            expected = static_cast<double>(level[0]);
          }
          different += room[0].get(0, c) == expected ? 0 : 1;
        }
        INFO(ops->name() << ", " << shards << " shards");
        CHECK(different == 0);
        for (size_t i = 1; i < room.size(); ++i) {
          for (int64_t c = 0; c < 40; ++c) CHECK(room[i].get(0, c) == 0);
        }
      }
    }
  }
}

TEST_CASE("shard sum: too little room\\, and sums that are not complete") {
  register_all_op_sets();
  const OpSet& ops = find_op_set("reference");
  Tensor one(DType::f32, 1, 4);
  const std::vector<View> views = {one.view()};
  CHECK_THROWS_AS(ShardSum(ops, 8, {0, 8}, views), std::logic_error);
  CHECK_THROWS_AS(ShardSum(ops, 8, {0, 1}, views).sums(), std::logic_error);
}

}  // namespace hearth::test
