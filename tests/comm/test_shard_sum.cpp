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
        Tensor gradient(dtype, 1, 40);
        gradient.fill(0);
        std::vector<View> views;
        for (int32_t i = 1; i < most_partial_sums(shards, {0, shards}); ++i) {
          room.emplace_back(dtype, 1, 40).fill_random("left by another step");
        }
        for (Tensor& one : room) views.push_back(one.view());
        const ShardSum sum(*ops, shards, {0, shards}, gradient.view(), views);
        for (int32_t s = 0; s < shards; ++s) {
          for (int half = 0; half < 2; ++half) {  // two micro-batches of a shard
            ops->add(stream, gradient.view(), std::as_const(leaves[static_cast<size_t>(s)]).view(),
                     gradient.view());
          }
          sum.end(stream, s);
        }
        REQUIRE(sum.sums().size() == 1);
        CHECK(sum.sums()[0].range == ShardRange{0, shards});
        CHECK(sum.sums()[0].sum.data == gradient.view().data);
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
          different += gradient.get(0, c) == expected ? 0 : 1;
        }
        INFO(ops->name() << ", " << shards << " shards");
        CHECK(different == 0);
      }
    }
  }
}

TEST_CASE("shard sum: the sums of some shards are their subtrees") {
  register_all_op_sets();
  const OpSet& ops = find_op_set("reference");
  TestStream stream(ops, 1, ops.row_scratch(1, 4));
  for (const ShardRange& range : Ranges{{1, 7}, {3, 6}, {10, 15}, {0, 1}, {14, 15}}) {
    const int32_t shards = range.end <= 8 ? 8 : 15;
    Tensor gradient(DType::f32, 1, 4);
    gradient.fill(0);
    std::vector<Tensor> room;
    for (int32_t i = 1; i < most_partial_sums(shards, range); ++i)
      room.emplace_back(DType::f32, 1, 4);
    std::vector<View> views;
    for (Tensor& one : room) views.push_back(one.view());
    const ShardSum sum(ops, shards, range, gradient.view(), views);
    for (int32_t s = range.begin; s < range.end; ++s) {
      Tensor leaf(DType::f32, 1, 4);
      leaf.fill(static_cast<double>(int64_t{1} << s));
      ops.add(stream, gradient.view(), std::as_const(leaf).view(), gradient.view());
      sum.end(stream, s);
    }
    const std::vector<PartialSum> sums = sum.sums();
    const Ranges trees = subtrees_of(shards, range);
    REQUIRE(sums.size() == trees.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      CHECK(sums[i].range == trees[i]);
      const auto all = static_cast<float>((1 << trees[i].end) - (1 << trees[i].begin));
      CHECK(sums[i].sum.as<float>()[0] == all);
    }
  }
}

TEST_CASE("shard sum: too little room\\, and shards of other ranks") {
  register_all_op_sets();
  const OpSet& ops = find_op_set("reference");
  TestStream stream(ops, 1, ops.row_scratch(1, 4));
  Tensor gradient(DType::f32, 1, 4), one(DType::f32, 1, 4);
  const std::vector<View> views = {one.view()};
  CHECK_THROWS_AS(ShardSum(ops, 8, {0, 8}, gradient.view(), views), std::logic_error);
  const ShardSum sum(ops, 8, {2, 4}, gradient.view(), views);
  CHECK_THROWS_AS(sum.end(stream, 4), std::logic_error);
  CHECK_THROWS_AS(sum.end(stream, 1), std::logic_error);
}

}  // namespace hearth::test
