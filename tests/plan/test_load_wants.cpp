// What decisions ask to load ahead: orders, budgets, and what is taken back.
#include <catch2/catch_test_macros.hpp>

#include "base/error.h"
#include "plan/decisions/equation_1.h"
#include "plan/decisions/load_wants.h"
#include "plan/split_cases.h"

namespace hearth::test {
namespace {

std::vector<BlockId> blocks_of(const Wants& wants) {
  std::vector<BlockId> blocks;
  for (const BlockWant& want : wants.load) blocks.push_back(want.block);
  return blocks;
}

TEST_CASE("stage wants: dense blocks first, then rank by rank across layers, within the budget") {
  const std::vector<StageLayer> layers = {
      {.dense = {0, 1}, .experts = {2, 3, 4}, .ranking = {2, 0, 1}},
      {.dense = {5}, .experts = {}, .ranking = {}},  // a dense layer
      {.dense = {6, 7}, .experts = {8, 9, 10}, .ranking = {1, 2, 0}}};
  const std::vector<size_t> bytes(11, 10);
  const Wants all = stage_wants(layers, bytes, 1000, true);
  CHECK(blocks_of(all) == std::vector<BlockId>{0, 1, 5, 6, 7, 4, 9, 2, 10, 3, 8});
  CHECK(all.drop.empty());
  for (size_t i = 0; i < all.load.size(); ++i) {
    CHECK(all.load[i].priority == Priority::stage);
    CHECK(all.load[i].rank == static_cast<int32_t>(i));
    CHECK(all.load[i].with_gradient);
  }
  CHECK(blocks_of(stage_wants(layers, bytes, 79, false)) ==
        std::vector<BlockId>{0, 1, 5, 6, 7, 4, 9});
  CHECK(blocks_of(stage_wants(layers, bytes, 80, false)).size() == 8);
  CHECK(stage_wants(layers, bytes, 9, false).load.empty());
  // It ends at the first block that does not fit: a lower rank does not overtake.
  std::vector<size_t> uneven = bytes;
  uneven[9] = 50;
  CHECK(blocks_of(stage_wants(layers, uneven, 85, false)) ==
        std::vector<BlockId>{0, 1, 5, 6, 7, 4});
  const std::vector<StageLayer> wrong = {{.dense = {}, .experts = {1, 2}, .ranking = {0}}};
  CHECK_THROWS_AS(stage_wants(wrong, bytes, 10, false), std::logic_error);
}

TEST_CASE("stage drops: what is still queued when the stage begins") {
  Wants asked;
  asked.load = {{0, Priority::stage, 0, false},
                {1, Priority::stage, 1, false},
                {2, Priority::layer, 0, false},
                {3, Priority::stage, 2, false}};
  const std::vector<Where> where = {Where::here, Where::queued, Where::queued, Where::coming};
  CHECK(stage_drops(asked, where) == std::vector<BlockId>{1});
}

TEST_CASE("split wants: loads in order, what was queued for others is taken back") {
  SplitCase c(6);
  c.tokens = {1, 30, 2, 20, 0, 12};
  c.set_bytes(10);
  c.problem.in = {1, 0};
  c.state(3).where = Where::here, c.state(3).bytes_left = 0;
  c.state(5).where = Where::coming, c.state(5).here_in_s = 3;
  c.state(2).where = Where::queued;  // too few tokens
  c.state(4).where = Where::queued;  // none
  c.state(1).where = Where::queued;  // and one that shall come
  const std::vector<BlockId> experts = {10, 11, 12, 13, 14, 15};
  const ExpertSplit split = split_by_equation_1(c.get(), EquationForm::corrected);
  const Wants wants = split_wants(split, experts, c.states[0], Priority::layer, false);
  CHECK(blocks_of(wants) == std::vector<BlockId>{15, 11});
  CHECK(wants.load[1].rank == 1);
  CHECK(wants.load[1].priority == Priority::layer);
  CHECK(wants.drop == std::vector<BlockId>{12, 14});
}

TEST_CASE("split wants: a second micro-batch changes the decision while loads are queued") {
  const std::vector<BlockId> experts = {0, 1, 2, 3};
  SplitCase c(4);
  c.problem.micro_batches = 2;
  c.set_bytes(10);
  c.problem.in = {1, 0};
  c.tokens = {9, 5, 1, 0};
  // Of 30 s in all, one load leaves 12 s, two leave 2 s.
  const ExpertSplit first = split_by_equation_1(c.get(), EquationForm::corrected);
  Wants wants = split_wants(first, experts, c.states[0], Priority::layer, false);
  CHECK(blocks_of(wants) == std::vector<BlockId>{0, 1});
  // Expert 0 is on its way, expert 1 is queued. The second micro-batch goes to expert 3.
  c.state(0).where = Where::coming, c.state(0).here_in_s = 8;
  c.state(1).where = Where::queued;
  c.passes[0].in_free_s = 8;
  c.tokens = {9, 5, 1, 0, 0, 0, 1, 20};
  const ExpertSplit second = split_by_equation_1(c.get(), EquationForm::corrected);
  wants = split_wants(second, experts, c.states[0], Priority::layer, false);
  CHECK(blocks_of(wants) == std::vector<BlockId>{0, 3});
  CHECK(wants.drop == std::vector<BlockId>{1});
}

}  // namespace
}  // namespace hearth::test
