// All interleavings with up to three preemptions of small cases of the loader.
#include <catch2/catch_test_macros.hpp>

#include "base/random.h"
#include "base/sanitized.h"
#include "plan/loader_explorer.h"

namespace hearth::test {
namespace {

using namespace loader_steps;

void explore(const LoaderCase& c, std::vector<Script> scripts, uint64_t least) {
  const int preemptions = kSanitized ? 2 : 3;
  const LoaderExplorer explorer(c, std::move(scripts), preemptions);
  INFO(explorer.interleavings() << " interleavings");
  CHECK(explorer.interleavings() >= (kSanitized ? 20 : least));
}

TEST_CASE("loader interleavings: two tasks want the one slot", "[loader]") {
  explore({.items = {{2}, {2}}, .classes = {{2, 1}}},
          {{demand(0, {reads(0)}), compute(0), demand(0, {reads(1)}), compute(0)},
           {demand(1, {writes(1)}), compute(1), demand(1, {writes(0)}), compute(1)},
           {want(0, Priority::expert)}},
          8'000);
}

TEST_CASE("loader interleavings: tasks need two items each, and have two slots", "[loader]") {
  explore({.items = {{1}, {1}, {2}}, .classes = {{2, 2}}},
          {{demand(0, {reads(0), reads(1)}), compute(0), demand(0, {reads(2)}), compute(0)},
           {demand(1, {reads(2), writes(0)}), compute(1), demand(1, {writes(1)}), compute(1)},
           {expect(0, 3), advance(5)}},
          8'000);
}

TEST_CASE("loader interleavings: waves of two tasks that overlap", "[loader]") {
  // Each holds its first wave while it asks for the second: four slots are enough.
  explore({.items = {{1}, {1}, {1}, {1}, {1}}, .classes = {{1, 4}}},
          {{demand(0, {reads(0)}), demand(1, {reads(1)}), compute(0), demand(0, {reads(2)}),
            compute(1), compute(0)},
           {demand(2, {reads(3)}), demand(3, {reads(4)}), compute(2), demand(2, {reads(0)}),
            compute(3), compute(2)}},
          8'000);
}

TEST_CASE("loader interleavings: wants, promotion and removal beside a task", "[loader]") {
  explore({.items = {{1}, {2}, {1}}, .classes = {{2, 2}}},
          {{demand(0, {reads(0)}), compute(0), demand(0, {reads(1), reads(2)}), compute(0)},
           {want(1, Priority::stage), want(2, Priority::layer), want(1, Priority::expert),
            remove(2), drop(1)}},
          4'000);
}

TEST_CASE("loader interleavings: gradients go home before their update", "[loader]") {
  // Item 1 is an accumulator. A second task takes its slot.
  explore(
      {.items = {{1}, {2, true}, {2}}, .classes = {{2, 2}}},
      {{demand(0, {reads(0), writes(1)}), compute(0), bring_home(1), wait_home(1), update(1, true)},
       {demand(1, {reads(2)}), compute(1), demand(1, {reads(1)}), compute(1)}},
      1'000);
}

TEST_CASE("loader interleavings: weights are updated while they come", "[loader]") {
  explore({.items = {{3}, {1}}, .classes = {{3, 1}}},
          {{demand(0, {reads(0)}), compute(0), demand(0, {reads(1)}), compute(0)},
           {want(0, Priority::stage), update(0), update(0), want(0, Priority::layer)}},
          1'000);
}

TEST_CASE("loader interleavings: nothing reads a home while it is updated", "[loader]") {
  explore({.items = {{3}, {1}}, .classes = {{3, 1}}},
          {{want(0, Priority::stage), demand(0, {reads(0)}), compute(0)},
           {begin_update(0), update(0), want(1, Priority::layer), begin_update(0), update(0)}},
          400);
  explore(
      {.items = {{2}, {2}, {1}}, .classes = {{2, 2}}},
      {{demand(0, {reads(0), writes(1)}, Start::issued), compute(0), bring_home(1)},
       {begin_update(0), want(0, Priority::layer), update(0)},
       {demand(1, {reads(2)}), compute(1), want(0, Priority::expert), want(1, Priority::stage)}},
      4'000);
}

TEST_CASE("loader interleavings: uses begin when all pieces are issued", "[loader]") {
  explore({.items = {{2}, {2}, {1}}, .classes = {{2, 2}}},
          {{demand(0, {reads(0), writes(1)}, Start::issued), compute(0), bring_home(1)},
           {demand(1, {reads(2)}, Start::issued), compute(1), want(0, Priority::layer),
            demand(1, {writes(2)}, Start::issued), compute(1)}},
          2'000);
}

TEST_CASE("loader interleavings: the budget shrinks at any point", "[loader]") {
  explore({.items = {{2}, {2}, {2}}, .classes = {{2, 3, 1}}},
          {{demand(0, {writes(0)}), compute(0), demand(0, {reads(1)}), compute(0)},
           {want(2, Priority::layer), shrink({2}), shrink({0})}},
          4'000);
}

TEST_CASE("loader interleavings: a shutdown at any point", "[loader]") {
  for (const Ending ending : {Ending::write_back, Ending::discard}) {
    explore({.items = {{2}, {2}, {1}}, .classes = {{2, 2}}},
            {{demand(0, {writes(0)}), compute(0), demand(0, {reads(1)}), compute(0)},
             {want(2, Priority::layer), want(1, Priority::stage)},
             {shut_down(ending)}},
            4'000);
    explore({.items = {{1}, {2}}, .classes = {{2, 1}}},
            {{demand(0, {writes(0)}, Start::issued), compute(0), bring_home(0), wait_home(0)},
             {want(1, Priority::layer), shut_down(ending)}},
            400);
  }
}

/// A random script of few steps.
Script random_script(const Random& random, uint64_t& draw, UseId use, ItemId items) {
  const auto item = [&] {
    return static_cast<ItemId>(random.below(draw++, static_cast<uint64_t>(items)));
  };
  Script script;
  for (uint64_t steps = 1 + random.below(draw++, 2); steps > 0; --steps) {
    switch (random.below(draw++, 8)) {
      case 0: script.push_back(want(item(), Priority::stage)); break;
      case 1: script.push_back(want(item(), Priority::expert)); break;
      case 2: script.push_back(drop(item())); break;
      case 3: script.push_back(bring_home(item())); break;
      case 4: script.push_back(update_if_possible(item())); break;
      default: {
        std::vector<Need> needs = {random.below(draw++, 2) == 0 ? reads(item()) : writes(item())};
        if (random.below(draw++, 2) == 0) needs.push_back(reads(item()));
        const Start start = random.below(draw++, 3) == 0 ? Start::issued : Start::arrived;
        script.push_back(demand(use, std::move(needs), start));
        script.push_back(compute(use));
      }
    }
  }
  return script;
}

void explore_random_cases(uint64_t cases, uint64_t first, int preemptions) {
  uint64_t interleavings = 0;
  for (uint64_t seed = first; seed < first + cases; ++seed) {
    INFO("case " << seed);
    const Random random(seed, RandomSite::shuffle, 27);
    uint64_t draw = 0;
    LoaderCase c = {.items = {{1 + random.below(draw++, 2)}, {2}, {1, true}},
                    .classes = {{2, 2, 2}}};
    if (random.below(draw++, 3) == 0) c.classes[0].slots = 3;
    c.settings.window_bytes = 1 + random.below(draw++, 2);
    std::vector<Script> scripts;
    for (UseId use = 0; use < 3; ++use) {
      scripts.push_back(random_script(random, draw, use, 3));
    }
    if (random.below(draw++, 3) == 0) scripts.push_back({shut_down(Ending::write_back)});
    interleavings += LoaderExplorer(c, std::move(scripts), preemptions).interleavings();
  }
  INFO(interleavings << " interleavings");
  CHECK(interleavings > 10 * cases);
}

TEST_CASE("loader interleavings: random scripts", "[loader]") {
  explore_random_cases(8, 1, kSanitized ? 1 : 2);
}
TEST_CASE("loader interleavings: many random scripts", "[.long]") {
  explore_random_cases(500, 1'000, 3);
}

}  // namespace
}  // namespace hearth::test
