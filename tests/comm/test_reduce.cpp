#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <mutex>
#include <numeric>

#include "comm/reduce_programs.h"
#include "support/all_op_sets.h"
#include "support/thread_ranks.h"

namespace hearth::test {
namespace {

RankOptions reducing_ranks(int32_t ranks) {
  RankOptions options;
  options.world.ranks = ranks;
  options.checked = true;
  return options;
}

}  // namespace

TEST_CASE("reduce: equal shards give equal bits on any number of ranks") {
  struct Case {
    int32_t shards;
    std::vector<int32_t> ranks;
  };
  for (const OpSet* ops : all_op_sets()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      if (!ops->supports(dtype, dtype == DType::f64 ? Compute::f64 : Compute::f32)) continue;
      for (const Case& one : {Case{8, {1, 2, 4, 8}}, Case{15, {1, 3, 5, 15}}, Case{12, {1, 6}}}) {
        const ReduceResult expected = reduced_on_one_rank(*ops, dtype, one.shards);
        CHECK(expected.depends_on_order);  // else the test proves nothing
        for (const int32_t ranks : one.ranks) {
          std::vector<ExpertDomains> sharing = ExpertDomains::of_levels({ranks});
          if (ranks % 2 == 0) {  // also in groups that are no neighbours
            const auto of_two = ExpertDomains::of_levels({2, ranks / 2});
            sharing.insert(sharing.end(), of_two.begin(), of_two.end());
          }
          for (const ExpertDomains& domains : sharing) {
            INFO(ops->name() << " " << name_of(dtype) << ", " << one.shards << " shards on "
                             << ranks << " ranks, " << domains.levels().size() << " levels, "
                             << domains.sharing() << " share experts");
            const auto ends = run_ranks(reducing_ranks(ranks), [&](World& world) {
              run_reduction(world, *ops, dtype, one.shards, domains, expected);
            });
            CHECK(first_line(ends).empty());
          }
        }
      }
    }
  }
}

TEST_CASE("reduce: owners are balanced\\, the same each time\\, and compute what they own") {
  const ShardMap map(8, 4);
  const ExpertDomains pairs = ExpertDomains::of_neighbours(4, 2);
  const ExpertDomains all = ExpertDomains::of_neighbours(4, 4);
  std::vector<OwnedBlock> blocks;
  for (int i = 0; i < 40; ++i) {
    blocks.push_back({1000 + 37 * ((i * 7) % 11),
                      i % 4 == 3 ? shares_of_expert(map, pairs, i / 4 % 2) : shares_of_all(map)});
  }
  for (int i = 0; i < 4; ++i) blocks.push_back({3000, shares_of_expert(map, all, i)});
  const Owners owners = choose_owners(map.shards(), map.ranks(), blocks);
  CHECK(choose_owners(map.shards(), map.ranks(), blocks).rank_of == owners.rank_of);
  std::vector<int64_t> bytes(4);
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto block = static_cast<BlockId>(b);
    CHECK(owners.uses(block, owners.owner(block)));
    bytes[static_cast<size_t>(owners.owner(block))] += blocks[b].bytes;
  }
  for (int i = 0; i < 4; ++i) CHECK(owners.owner(40 + i) == i);  // one rank alone computes it
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  CHECK(*most - *least <= 1370);  // a block

  blocks[0].shares.pop_back();
  CHECK_THROWS_AS(choose_owners(map.shards(), map.ranks(), blocks), std::logic_error);
  blocks[0].shares = {{0, {0, 4}}, {1, {3, 8}}};
  CHECK_THROWS_AS(choose_owners(map.shards(), map.ranks(), blocks), std::logic_error);
  CHECK_THROWS_AS(ExpertDomains::of_neighbours(4, 3), std::logic_error);
}

TEST_CASE("reduce: a gradient goes over each link once") {
  register_all_op_sets();
  const OpSet& ops = find_op_set("cpu");
  const ReduceResult expected = reduced_on_one_rank(ops, DType::f32, 8);
  for (const int32_t ranks : {2, 4, 8}) {
    std::mutex mutex;
    int64_t sent = 0, least = 0;
    const auto ends = run_ranks(reducing_ranks(ranks), [&](World& world) {
      const ReduceTraffic traffic = run_reduction(world, ops, DType::f32, 8, {}, expected);
      const std::vector<int64_t> bytes = world.sent_bytes();
      const std::lock_guard lock(mutex);
      sent += std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
      least += traffic.least_bytes;
    });
    CHECK(first_line(ends).empty());
    CHECK(sent == least);
  }
}

TEST_CASE("reduce: a rank that thinks that another owns a block is found") {
  register_all_op_sets();
  const OpSet& ops = find_op_set("cpu");
  const ReduceResult expected = reduced_on_one_rank(ops, DType::f32, 8);
  const auto ends = run_ranks(reducing_ranks(4), [&](World& world) {
    run_reduction(world, ops, DType::f32, 8, {}, expected, world.rank() == 2);
  });
  for (const RankEnd& end : ends) {
    INFO(end.line);
    CHECK(end.code == ExitCode::internal);
    CHECK(end.line.find("rank 2 (host ") != std::string::npos);
    CHECK(end.line.find("in transfer 0 of step 1") != std::string::npos);
    CHECK(end.line.find(" differ: ") != std::string::npos);
  }
}

}  // namespace hearth::test
