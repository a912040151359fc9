// The loader's rules, one by one: pieces and windows, slots, what is evicted, write-backs, budgets,
// misuse.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "plan/loader_world.h"

namespace hearth::test {
namespace {

using UseState = LoaderWorld::UseState;

/// A use of one item that ends at once.
void use_once(LoaderWorld& world, const Need& need) {
  world.demand(0, {need});
  while (!world.can_end(0)) {
    const bool in = world.in_flight(true) > 0;
    REQUIRE(world.in_flight(in) > 0);
    world.finish_piece(in);
  }
  world.end_use(0);
}

std::vector<ItemId> dropped(const LoaderWorld& world, DropReason reason) {
  std::vector<ItemId> items;
  for (const LoadCommand& told : world.told()) {
    if (told.kind == CommandKind::dropped && told.reason == reason) items.push_back(told.item);
  }
  return items;
}

size_t count(const LoaderWorld& world, CommandKind kind) {
  return static_cast<size_t>(std::ranges::count(world.told(), kind, &LoadCommand::kind));
}

TEST_CASE("loader: an item comes in pieces within the window", "[loader]") {
  Loader loader(std::vector<LoadItem>{{70}}, std::vector<SlotClass>{{64, 1}, {128, 2}},
                {.piece_bytes = 16, .window_bytes = 48}, 1);
  CHECK(loader.arena_bytes() == 64 + 2 * 128);
  loader.demand(0, std::vector{reads(0)});
  std::vector<Piece> pieces;
  while (const auto command = loader.next()) pieces.push_back(command->piece);
  REQUIRE(pieces.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(pieces[i].home_offset == 16 * i);
    CHECK(pieces[i].arena_offset == 64 + 16 * i);
    CHECK(pieces[i].bytes == 16);
    CHECK(pieces[i].kind == PieceKind::load);
  }
  loader.finished(pieces[1].ticket);
  pieces.push_back(loader.next()->piece);
  CHECK(!loader.next());  // the last piece of 6 bytes waits for the window
  loader.finished(pieces[0].ticket);
  const Piece last = loader.next()->piece;
  CHECK(last.bytes == 6);
  CHECK(last.home_offset == 64);
  for (const Piece& piece : {pieces[2], last}) loader.finished(piece.ticket);
  CHECK(!loader.next());
  CHECK(loader.where(0) == Where::coming);
  loader.finished(pieces[3].ticket);
  const auto woken = loader.next();
  REQUIRE(woken);
  CHECK(woken->kind == CommandKind::wake);
  CHECK(woken->use == 0);
  CHECK(loader.where(0) == Where::here);
  CHECK(loader.arena_offset(0) == 64);
  CHECK(!loader.next());
}

TEST_CASE("loader: the copy that is needed last, or costs least, is evicted", "[loader]") {
  const auto evicted = [](std::vector<Position> next_use, std::vector<size_t> bytes,
                          ItemId written = -1) {
    LoaderCase c = {.items = {}, .classes = {{8, 3}}};
    for (const size_t b : bytes) c.items.push_back({b});
    c.items.push_back({8});
    LoaderWorld world(c);
    for (ItemId item = 0; item < 3; ++item) {
      use_once(world, item == written ? writes(item) : reads(item));
      world.expect(item, next_use[static_cast<size_t>(item)]);
    }
    world.advance(10);
    use_once(world, reads(3));
    const std::vector<ItemId> items = dropped(world, DropReason::evicted);
    REQUIRE(items.size() == 1);
    return items.front();
  };
  CHECK(evicted({12, 40, 20}, {8, 8, 8}) == 1);          // needed last
  CHECK(evicted({kNever, 40, 20}, {8, 8, 8}) == 0);      // no use is known
  CHECK(evicted({12, 5, 20}, {8, 8, 8}) == 1);           // its use has passed
  CHECK(evicted({kNever, kNever, 20}, {8, 8, 8}) == 0);  // the use that is longest ago
  CHECK(evicted({20, 20, 20}, {8, 5, 8}) == 1);          // the cheapest to load again
  CHECK(evicted({20, 21, 20}, {8, 8, 4}) == 2);          // half the bytes, nearly as soon
  CHECK(evicted({40, 30, 20}, {8, 8, 8}, 0) == 1);       // 0 would have to be written back
  CHECK(evicted({kNever, kNever, 20}, {8, 8, 8}, 0) == 1);
  CHECK(evicted({40, 40, 20}, {4, 8, 8}, 0) == 1);  // equal costs: what need not go home first
}

TEST_CASE("loader: what waits for its use is evicted only for what is more urgent", "[loader]") {
  LoaderWorld world({.items = {{1}, {1}, {1}}, .classes = {{1, 1}}});
  world.want({0, Priority::layer, 1});
  world.finish_piece(true);
  CHECK(world.is_here(0));
  world.want({1, Priority::stage, 0});
  world.want({2, Priority::layer, 2});
  CHECK(world.in_flight(true) == 0);
  CHECK(world.loader().where(1) == Where::queued);
  world.want({2, Priority::layer, 0});  // promoted
  CHECK(world.in_flight(true) == 1);
  CHECK(world.loader().where(0) == Where::queued);
  world.finish_piece(true);
  CHECK(world.is_here(2));
  use_once(world, reads(2));  // from now on the slot is free for others, the most urgent first
  CHECK(world.loads().back() == 0);
  world.come_to_rest();
}

TEST_CASE("loader: a demand takes the slot of a load ahead that has begun", "[loader]") {
  LoaderWorld world({.items = {{4}, {4}}, .classes = {{4, 1}}});
  world.want({0, Priority::expert, 0});
  CHECK(world.in_flight(true) == 2);
  world.demand(0, {reads(1)});
  CHECK(world.in_flight(true) == 2);
  world.finish_piece(true);
  CHECK(world.loader().where(0) == Where::leaving);  // between pieces
  world.finish_piece(true);
  CHECK(world.pieces(true) == std::vector<ItemId>{0, 0, 1, 1});
  CHECK(world.loader().where(0) == Where::queued);  // it is still wanted
  CHECK(dropped(world, DropReason::evicted) == std::vector<ItemId>{0});
  world.come_to_rest();
  CHECK(world.is_here(0));
}

TEST_CASE("loader: a use does not take the slot of what it needs itself", "[loader]") {
  LoaderWorld world({.items = {{2}, {2}, {2}}, .classes = {{2, 2}}});
  use_once(world, reads(1));
  world.demand(1, {reads(2)});
  world.finish_piece(true);
  world.finish_piece(true);
  REQUIRE(world.can_end(1));
  world.demand(0, {reads(0), reads(1)});  // 2 is held, and 1 is needed
  CHECK(world.is_here(1));
  CHECK(world.in_flight(true) == 0);
  world.end_use(1);
  world.come_to_rest();
  CHECK(dropped(world, DropReason::evicted) == std::vector<ItemId>{2});
}

TEST_CASE("loader: what is there and asked for no more does not come again after an update",
          "[loader]") {
  for (const bool take_back : {false, true}) {
    LoaderWorld world({.items = {{4}, {4}}, .classes = {{4, 2}}});
    for (ItemId item = 0; item < 2; ++item) world.want({item, Priority::layer, item});
    world.come_to_rest();
    REQUIRE(world.is_here(1));
    if (take_back) CHECK(!world.remove(1));
    CHECK(world.is_here(1));
    world.begin_update(1);
    world.updated(1, false);
    world.come_to_rest();
    CHECK(world.is_here(1) == !take_back);
  }
}

TEST_CASE("loader: wants are taken back while queued, and cancelled between pieces", "[loader]") {
  LoaderWorld world({.items = {{4}, {4}, {4}}, .classes = {{4, 3}}});
  for (ItemId item = 0; item < 3; ++item) world.want({item, Priority::layer, item});
  CHECK(world.remove(2));
  CHECK(!world.remove(2));
  CHECK(!world.remove(0));  // it comes
  world.drop(0);            // two of its pieces are in flight
  CHECK(world.loader().where(0) == Where::leaving);
  world.come_to_rest();
  CHECK(world.pieces(true) == std::vector<ItemId>{0, 0, 1, 1, 1, 1});
  CHECK(world.loader().where(0) == Where::home);
  CHECK(world.is_here(1));
  world.demand(0, {reads(1)});
  world.drop(1);  // once nobody holds it
  CHECK(world.is_here(1));
  world.end_use(0);
  CHECK(world.loader().where(1) == Where::home);
  CHECK(dropped(world, DropReason::unwanted) == std::vector<ItemId>{0, 1});
}

TEST_CASE("loader: what is newer goes home before its slot is used again", "[loader]") {
  LoaderWorld world({.items = {{2, true}, {2}}, .classes = {{2, 1}}});
  use_once(world, writes(0));
  CHECK(world.loads() == std::vector<ItemId>{0});
  CHECK(world.pieces(true).size() == 1);  // cleared, not loaded
  CHECK(!world.is_at_home(0));
  world.demand(0, {reads(1)});
  CHECK(world.pieces(false) == std::vector<ItemId>{0, 0});
  CHECK(world.loads().size() == 1);
  world.finish_piece(false);
  CHECK(world.loads().size() == 1);
  world.finish_piece(false);
  CHECK(world.is_at_home(0));
  CHECK(world.loads() == std::vector<ItemId>{0, 1});
  world.come_to_rest();
  use_once(world, reads(0));  // home is no longer zero: two pieces cross the link
  CHECK(world.pieces(true).size() == 5);
  world.updated(0, true);
  use_once(world, reads(0));
  CHECK(world.pieces(true).size() == 6);
}

TEST_CASE("loader: an accumulator goes home and stays", "[loader]") {
  LoaderWorld world({.items = {{2}}, .classes = {{2, 1}}});
  world.bring_home(0);  // it is there
  CHECK(count(world, CommandKind::at_home) == 1);
  world.demand(0, {writes(0)});
  world.finish_piece(true);
  world.finish_piece(true);
  world.bring_home(0);  // after the use
  CHECK(world.in_flight(false) == 0);
  world.end_use(0);
  CHECK(world.in_flight(false) == 2);
  world.come_to_rest();
  CHECK(count(world, CommandKind::at_home) == 2);
  CHECK(world.is_here(0));
  world.updated(0, false);
  CHECK(world.loader().where(0) == Where::home);
  CHECK(dropped(world, DropReason::stale) == std::vector<ItemId>{0});
}

TEST_CASE("loader: a shrinking budget drops the cheapest and keeps the least", "[loader]") {
  LoaderWorld world({.items = {{4}, {4}, {4}, {9}, {9}}, .classes = {{4, 4, 2}, {9, 2, 1}}});
  for (ItemId item = 0; item < 5; ++item) {
    use_once(world, item == 1 ? writes(item) : reads(item));
    world.expect(item, item == 2 ? 1000 : 10 + item);
  }
  world.shrink({3, 2});  // an empty slot is enough
  CHECK(world.loader().open_bytes() == 30);
  CHECK(dropped(world, DropReason::shrunk).empty());
  world.shrink({2, 5});  // the item that is needed last
  CHECK(dropped(world, DropReason::shrunk) == std::vector<ItemId>{2});
  CHECK(count(world, CommandKind::shrunk) == 2);
  world.shrink({0, 1});  // two small slots must stay; of the large ones the later use
  CHECK(dropped(world, DropReason::shrunk) == std::vector<ItemId>{2, 4});
  CHECK(world.loader().open_bytes() == 17);
  world.shrink({4, 2});  // a budget does not grow
  CHECK(world.loader().open_bytes() == 17);
  CHECK(count(world, CommandKind::shrunk) == 4);
  world.come_to_rest();
}

TEST_CASE("loader: a shutdown refuses, cancels, and brings home", "[loader]") {
  for (const Ending ending : {Ending::write_back, Ending::discard}) {
    LoaderWorld world({.items = {{2}, {2}, {2}, {2}}, .classes = {{2, 4}}});
    use_once(world, writes(0));
    world.demand(0, {reads(1)});
    world.want({2, Priority::stage, 0});
    world.come_to_rest();
    world.demand(0, {reads(1)});
    world.demand(1, {reads(3)});
    world.shut_down(ending);
    CHECK(world.state(1) == UseState::refused);
    CHECK(world.state(0) == UseState::woken);
    CHECK(!world.has_ended());
    CHECK(world.in_flight(false) == (ending == Ending::write_back ? 2 : 0));
    world.come_to_rest();
    CHECK(world.is_at_home(0) == (ending == Ending::write_back));
    world.demand(2, {reads(0)});
    CHECK(world.state(2) == UseState::refused);
    CHECK(count(world, CommandKind::ended) == 1);
  }
}

TEST_CASE("loader: misuse is an error", "[loader]") {
  const std::vector<LoadItem> items = {{2}, {2}};
  const std::vector<SlotClass> classes = {{2, 1}};
  const LoaderSettings settings = {.piece_bytes = 2, .window_bytes = 4};
  const auto make = [&](const LoaderSettings& s) { return Loader(items, classes, s, 2); };
  CHECK_THROWS_AS(make({.piece_bytes = 5, .window_bytes = 4}), std::logic_error);
  CHECK_THROWS_AS(Loader(std::vector<LoadItem>{{3}}, classes, settings, 1), std::logic_error);
  CHECK_THROWS_AS(Loader(std::vector<LoadItem>{{0}}, classes, settings, 1), std::logic_error);
  CHECK_THROWS_AS(Loader(items, std::vector<SlotClass>{{2, 1, 2}}, settings, 1), std::logic_error);
  Loader loader = make(settings);
  CHECK_THROWS_AS(loader.demand(0, std::vector{reads(0), reads(1)}), std::logic_error);
  loader.demand(0, std::vector{reads(0), reads(0)});  // one slot
  CHECK_THROWS_AS(loader.demand(0, std::vector{reads(0)}), std::logic_error);
  CHECK_THROWS_AS(loader.end_use(0), std::logic_error);
  const Piece piece = loader.next()->piece;
  loader.finished(piece.ticket);
  CHECK_THROWS_AS(loader.finished(piece.ticket), std::logic_error);
  CHECK_THROWS_AS(loader.finished(-1), std::logic_error);
  CHECK_THROWS_AS(loader.updated(0), std::logic_error);  // in use
  CHECK_THROWS_AS(loader.withdraw(0), std::logic_error);
  CHECK_THROWS_AS(loader.arena_offset(1), std::logic_error);
  CHECK_THROWS(loader.want({2, Priority::layer, 0}));
  loader.end_use(0);
  loader.updated(0);
}

}  // namespace
}  // namespace hearth::test
