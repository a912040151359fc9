// The loader under random events, each run a random interleaving of wishes, uses, links, updates,
// shrinking budgets and shutdowns. plan/loader_world.h checks every command.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <exception>

#include "base/random.h"
#include "base/sanitized.h"
#include "plan/loader_world.h"

namespace hearth::test {
namespace {

class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed, RandomSite::shuffle, 26) {}
  uint64_t below(uint64_t n) { return random_.below(next_++, n); }
  bool one_in(uint64_t n) { return below(n) == 0; }
  int32_t number(uint64_t n) { return static_cast<int32_t>(below(n)); }

 private:
  Random random_;
  uint64_t next_ = 0;
};

LoaderCase random_case(Draws& draws) {
  LoaderCase c;
  for (uint64_t i = 1 + draws.below(2); i > 0; --i) {
    const size_t bytes = (c.classes.empty() ? 1 : c.classes.back().bytes + 1) + draws.below(3);
    const int32_t slots = 1 + draws.number(3);
    c.classes.push_back({bytes, slots, 1 + draws.number(static_cast<uint64_t>(slots))});
  }
  for (uint64_t i = 2 + draws.below(6); i > 0; --i) {
    c.items.push_back({1 + draws.below(c.classes.back().bytes), draws.one_in(4)});
  }
  c.settings.piece_bytes = 1 + draws.below(2);
  c.settings.window_bytes = c.settings.piece_bytes + draws.below(3);
  c.settings.window_pieces = 1 + draws.number(3);
  c.settings.patience = 1 + draws.number(20);
  c.uses = 1 + draws.number(4);
  return c;
}

/// Needs that fit what a shrinking budget leaves.
std::vector<Need> random_needs(Draws& draws, const LoaderCase& c) {
  std::vector<Need> needs;
  std::vector<int32_t> left;
  for (const SlotClass& s : c.classes) left.push_back(s.least);
  for (uint64_t i = draws.below(4); i > 0; --i) {
    const ItemId item = draws.number(c.items.size());
    const size_t bytes = c.items[static_cast<size_t>(item)].bytes;
    size_t s = 0;
    while (c.classes[s].bytes < bytes) ++s;
    if (left[s]-- <= 0) break;
    needs.push_back({item, draws.one_in(3) ? UseAccess::write : UseAccess::read});
  }
  return needs;
}

void one_event(Draws& draws, const LoaderCase& c, LoaderWorld& world) {
  const ItemId item = draws.number(c.items.size());
  const UseId use = draws.number(static_cast<uint64_t>(c.uses));
  switch (draws.below(24)) {
    case 0:
    case 1:
    case 2:
    case 3: world.want({item, static_cast<Priority>(draws.below(3)), draws.number(3)}); break;
    case 4: world.remove(item); break;
    case 5: world.drop(item); break;
    case 6: world.expect(item, draws.one_in(3) ? kNever : draws.number(50)); break;
    case 7: world.advance(draws.number(50)); break;
    case 8:
      if (!world.can_update(item)) break;
      if (!world.is_updating(item) && draws.one_in(2)) {
        world.begin_update(item);
      } else {
        world.updated(item, draws.one_in(3));
      }
      break;
    case 9: world.bring_home(item); break;
    case 10:
      if (draws.one_in(8)) {
        std::vector<int32_t> slots;
        for (const SlotClass& s : c.classes) {
          slots.push_back(draws.number(static_cast<uint64_t>(s.slots) + 1));
        }
        world.shrink(slots);
      }
      break;
    case 11:
      if (draws.one_in(12)) {
        world.shut_down(draws.one_in(2) ? Ending::write_back : Ending::discard);
      }
      break;
    case 12:
    case 13:
    case 14:
    case 15: {
      const LoaderWorld::UseState state = world.state(use);
      if (state == LoaderWorld::UseState::waiting) {
        if (draws.one_in(4)) world.withdraw(use);
      } else if (state == LoaderWorld::UseState::woken) {
        if (world.can_end(use)) world.end_use(use);
      } else {
        world.demand(use, random_needs(draws, c), draws.one_in(3) ? Start::issued : Start::arrived);
      }
      break;
    }
    default: {
      const bool in = draws.below(3) > 0;
      if (const size_t n = world.in_flight(in)) world.finish_piece(in, draws.below(n));
    }
  }
}

/// Returns the events and the digest of the commands.
std::pair<uint64_t, uint64_t> run_once(uint64_t seed, bool checks_books) {
  Draws draws(seed);
  const LoaderCase c = random_case(draws);
  LoaderWorld world(c, draws.one_in(2));
  world.check_books(checks_books);
  for (uint64_t i = 8 + draws.below(40); i > 0 && !world.has_ended(); --i) {
    one_event(draws, c, world);
  }
  world.come_to_rest();
  if (!world.is_shutting()) {
    if (draws.one_in(2)) {  // every item comes, whatever was left behind
      for (ItemId item = 0; item < static_cast<ItemId>(c.items.size()); ++item) {
        world.demand(0, {{item, UseAccess::read}});
        world.come_to_rest();
      }
    }
    world.shut_down(Ending::write_back);
    world.come_to_rest();
  }
  return {world.events(), world.digest()};
}

/// `most_seconds`: of a core, since tests share a machine.
void run_many(uint64_t first, uint64_t runs, double most_seconds) {
  const std::clock_t begin = std::clock();
  uint64_t events = 0, done = 0;
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    try {
      events += run_once(seed, seed % 8 == 0).first;
    } catch (const std::exception& e) {
      FAIL("seed " << seed << ": " << e.what());
    }
    ++done;
    if (seed % 256 == 0 &&
        static_cast<double>(std::clock() - begin) > most_seconds * CLOCKS_PER_SEC) {
      break;
    }
  }
  INFO(done << " interleavings, " << events << " events");
  CHECK(done > std::min<uint64_t>(runs, 100) - 1);
}

TEST_CASE("loader: random interleavings", "[loader]") {
  run_many(1, kSanitized ? 10'000 : 300'000, 20);
}
TEST_CASE("loader: ten million random interleavings", "[.long]") {
  run_many(1'000'000, 10'000'000, 7200);
}

TEST_CASE("loader: equal events, equal commands", "[loader]") {
  for (uint64_t seed = 1; seed < 200; ++seed) {
    CHECK(run_once(seed, false) == run_once(seed, true));
  }
}

}  // namespace
}  // namespace hearth::test
