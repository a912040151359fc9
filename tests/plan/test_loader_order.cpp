// In which order the loader loads: by urgency, without starving what is less urgent, and the same
// way whether links or model time drive it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <exception>

#include "base/random.h"
#include "plan/loader_world.h"

namespace hearth::test {
namespace {

TEST_CASE("loader: loads begin in the order of their urgency", "[loader]") {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Random random(seed, RandomSite::shuffle, 28);
    uint64_t draw = 0;
    const auto below = [&](uint64_t n) { return static_cast<int32_t>(random.below(draw++, n)); };
    LoaderCase c = {.items = {}, .classes = {{2, 12}, {4, 12}}};
    const int32_t items = 4 + below(8);
    for (int32_t i = 0; i < items; ++i) c.items.push_back({1 + random.below(draw++, 4)});
    c.settings = {.piece_bytes = 1, .window_bytes = 1 + random.below(draw++, 3)};
    c.settings.patience = 1 << 30;
    LoaderWorld world(c);
    world.check_order(true);  // at every piece
    try {
      for (int i = 0; i < 40; ++i) {
        const ItemId item = below(static_cast<uint64_t>(items));
        const UseId use = below(4);
        const int what = below(6);
        if (what < 2) {
          world.want({item, static_cast<Priority>(below(3)), below(4)});
        } else if (what == 2) {
          world.remove(item);
        } else if (what == 3 && world.state(use) == LoaderWorld::UseState::free) {
          world.demand(use, {reads(item)});
        } else if (what == 3 && world.can_end(use)) {
          world.end_use(use);
        } else if (world.in_flight(true) > 0) {
          world.finish_piece(true, static_cast<size_t>(below(world.in_flight(true))));
        }
      }
      world.come_to_rest();
    } catch (const std::exception& e) {
      FAIL("seed " << seed << ": " << e.what());
    }
  }
}

TEST_CASE("loader: each queue that can load has its turns", "[loader]") {
  for (const int32_t patience : {1, 4, 16}) {
    LoaderCase c = {.items = {}, .classes = {{1, 6}, {400, 2}}};
    for (int i = 0; i < 6; ++i) c.items.push_back({1});
    const ItemId layer = 6, stage = 7;
    c.items.push_back({400});
    c.items.push_back({400});
    c.settings.patience = patience;
    LoaderWorld world(c);
    world.check_books(false);
    world.want({stage, Priority::stage, 0});
    world.want({layer, Priority::layer, 0});
    // Experts that are dropped and wanted again as soon as they are there.
    while (!world.is_here(layer) || !world.is_here(stage)) {
      for (ItemId item = 0; item < 6; ++item) {
        if (world.is_here(item)) world.drop(item);
        world.want({item, Priority::expert, item});
      }
      world.finish_piece(true);
      REQUIRE(world.pieces(true).size() < 100'000);
    }
    const std::vector<ItemId>& pieces = world.pieces(true);
    for (const ItemId slow : {layer, stage}) {
      int32_t since = 0, seen = 0, longest = 0;
      for (const ItemId item : pieces) {
        since = item == slow ? 0 : since + 1;
        if (item == slow) ++seen;
        if (seen > 0 && seen < 400) longest = std::max(longest, since);
      }
      CHECK(seen == 400);
      CHECK(longest <= patience + 1);
      CHECK(longest >= patience);  // and no more turns than that
    }
    world.come_to_rest();
  }
}

TEST_CASE("loader: a flood of demands does not keep accumulators from home", "[loader]") {
  LoaderCase c = {.items = {}, .classes = {{1, 4}, {100, 1}}};
  for (int i = 0; i < 8; ++i) c.items.push_back({1});
  c.items.push_back({100});
  c.settings.patience = 3;
  LoaderWorld world(c);
  world.check_books(false);
  world.demand(0, {{8, UseAccess::write}});
  while (!world.can_end(0)) world.finish_piece(true);
  world.bring_home(8);
  world.end_use(0);
  // Every demand takes the slot of an item that was written.
  int32_t rounds = 0;
  for (ItemId item = 0; world.asked_home(8); item = (item + 1) % 8, ++rounds) {
    REQUIRE(rounds < 1000);
    world.demand(0, {{item, UseAccess::write}});
    while (!world.can_end(0)) world.finish_piece(world.in_flight(true) > 0);
    world.end_use(0);
  }
  CHECK(world.is_at_home(8));
}

TEST_CASE("loader: a demand waits for no more than the window", "[loader]") {
  for (size_t before = 0; before < 40; ++before) {
    LoaderCase c = {.items = {{64}, {64}, {5}}, .classes = {{64, 3}}};
    c.settings = {.piece_bytes = 4, .window_bytes = 12};
    LoaderWorld world(c);
    world.want({0, Priority::expert, 0});
    world.want({1, Priority::stage, 0});
    for (size_t i = 0; i < before && world.in_flight(true) > 0; ++i) world.finish_piece(true);
    const size_t already = world.pieces(true).size();
    world.demand(0, {reads(2)});
    world.come_to_rest();
    const std::vector<ItemId>& pieces = world.pieces(true);
    if (already == pieces.size()) continue;
    CHECK(pieces[already] == 2);  // what was in flight, at most the window, is all that goes before
  }
}

/// Links of a device on model time, one piece after another: what a simulator does with the loader.
class ModelLinks {
 public:
  ModelLinks(double in_bytes_per_s, double out_bytes_per_s)
      : rates_{out_bytes_per_s, in_bytes_per_s} {}

  /// Takes the loader's commands at `now`; uses that were woken.
  std::vector<UseId> take(Loader& loader, double now) {
    std::vector<UseId> woken;
    while (const std::optional<LoadCommand> command = loader.next()) {
      if (command->kind == CommandKind::wake) woken.push_back(command->use);
      if (command->kind != CommandKind::piece) continue;
      const Piece& piece = command->piece;
      const size_t d = piece.kind == PieceKind::store ? 0 : 1;
      free_at_[d] = std::max(free_at_[d], now) + static_cast<double>(piece.bytes) / rates_[d];
      ends_.push_back({free_at_[d], piece.ticket});
      if (piece.home_offset == 0 && d == 1) loads_.push_back(piece.item);
    }
    return woken;
  }
  /// The next piece ends: when.
  double step(Loader& loader) {
    const auto first = std::ranges::min_element(ends_);
    const auto [time, ticket] = *first;
    ends_.erase(first);
    loader.finished(ticket);
    return time;
  }
  const std::vector<ItemId>& loads() const { return loads_; }

 private:
  double rates_[2];
  double free_at_[2] = {};
  std::vector<std::pair<double, int32_t>> ends_;
  std::vector<ItemId> loads_;
};

TEST_CASE("loader: model time drives it as links do", "[loader]") {
  // Tasks in order, each of one of twelve experts; the next two are wanted ahead.
  LoaderCase c = {.items = {}, .classes = {{8, 5}}};
  for (int i = 0; i < 12; ++i) c.items.push_back({8});
  c.settings = {.piece_bytes = 4, .window_bytes = 8};
  std::vector<ItemId> order;
  const Random random(5, RandomSite::shuffle, 29);
  for (uint64_t t = 0; t < 200; ++t) order.push_back(static_cast<ItemId>(random.below(t, 12)));

  std::vector<ItemId> by_rate[2];
  double end[2] = {};
  for (const size_t run : {0, 1}) {
    const double rate = run == 0 ? 8 : 8000;
    ModelLinks links(rate, rate);
    Loader loader(c.items, c.classes, c.settings, 1);
    double now = 0;
    for (size_t t = 0; t < order.size(); ++t) {
      for (size_t ahead = 1; ahead <= 2 && t + ahead < order.size(); ++ahead) {
        loader.want({order[t + ahead], Priority::layer, static_cast<int32_t>(t + ahead)});
        links.take(loader, now);
      }
      loader.demand(0, std::vector{reads(order[t])});
      while (links.take(loader, now).empty()) now = std::max(now, links.step(loader));
      loader.end_use(0);  // a task without time: all it waits for is the link
      loader.advance(static_cast<Position>(t));
    }
    by_rate[run] = links.loads();
    end[run] = now;
  }
  CHECK(by_rate[0] == by_rate[1]);
  CHECK(end[0] > 0);
  // Equal to rounding: with tasks that take no time only the link's rate scales.
  CHECK(std::abs(end[0] / end[1] - 1000) < 1e-6 * 1000);
  CHECK(end[0] >= static_cast<double>(by_rate[0].size()) - 3);  // a load takes a second

  // The same events, by a driver that has no time.
  LoaderWorld world(c);
  for (size_t t = 0; t < order.size(); ++t) {
    for (size_t ahead = 1; ahead <= 2 && t + ahead < order.size(); ++ahead) {
      world.want({order[t + ahead], Priority::layer, static_cast<int32_t>(t + ahead)});
    }
    world.demand(0, {reads(order[t])});
    while (!world.can_end(0)) world.finish_piece(true);
    world.end_use(0);
    world.advance(static_cast<Position>(t));
  }
  CHECK(world.loads() == by_rate[0]);
}

TEST_CASE("loader: a copy goes on as the original does", "[loader]") {
  LoaderCase c = {.items = {{2}, {3}, {1}, {2}}, .classes = {{3, 2}}};
  LoaderWorld original(c);
  original.want({0, Priority::layer, 0});
  original.demand(0, {{1, UseAccess::write}});
  original.finish_piece(true);
  LoaderWorld copy = original;
  for (LoaderWorld* world : {&original, &copy}) {
    world->want({3, Priority::expert, 0});
    world->come_to_rest();
    world->demand(1, {reads(2)});
    world->come_to_rest();
  }
  CHECK(original.digest() == copy.digest());
  CHECK(original.loads() == copy.loads());
}

}  // namespace
}  // namespace hearth::test
