// Two compute threads use a device's copies at random, against what must be in each slot: contents
// are checked by tensor and version, gradients by how often they were added to.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <shared_mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/sanitized.h"
#include "device/virtual_device.h"
#include "runtime/residency_homes.h"
#include "support/faulty_device.h"

namespace hearth::test {
namespace {

struct Game {
  uint64_t seed = 1;
  int32_t steps = 200;  // of each thread
  HomeShape shape = {.experts = 7, .hidden = 32, .width = 16};
  int32_t weights = 4, gradients = 4;
  VirtualOptions device = {};
  int most_delay_us = 0;
  int64_t may_pin = int64_t{1} << 60;
  int64_t fail_copy = 0;
  int stop_after_us = -1;  // another thread stops all
};

/// What the threads share. A block's mutex stands for the order that a schedule gives: whoever
/// leases holds it shared, whoever changes the home holds it alone.
class Table {
 public:
  explicit Table(const Game& g)
      : game(g),
        homes(g.shape),
        plan(homes.plan(g.weights, g.gradients, 700)),  // a piece is no multiple of a row
        device(std::make_unique<FaultyDevice>(make_virtual_device(g.device))),
        mutexes(homes.table.blocks().size()),
        added(homes.table.blocks().size()) {
    device->may_pin = g.may_pin;
    set_warning_sink([](const std::string&) {});  // that not all is pinned
    pinned.emplace(*device, Residency::home_memory(homes.table, plan),
                   PinnedHomes::Options{.piece_bytes = 4096, .threads = 2});
    set_warning_sink({});
    residency.emplace(*device, homes.table, plan, *pinned);
    device->most_delay_us = g.most_delay_us;
    device->fail_copy = g.fail_copy;
  }
  /// The block whose accumulators travel with an expert.
  BlockId trained(BlockId expert) const {
    const auto adapter = homes.table.adapter_of(expert);
    return adapter ? *adapter : expert;
  }

  const Game game;
  ResidencyHomes homes;
  SlotPlan plan;
  std::unique_ptr<FaultyDevice> device;
  std::vector<std::shared_mutex> mutexes;  // by block
  std::vector<float> added;                // by block, since its update; of the thread that owns it
  std::optional<PinnedHomes> pinned;
  std::optional<Residency> residency;
  std::atomic<int> faults{0};
};

/// A compute thread. Experts of its own parity are its own: it adds to their gradients.
class Player {
 public:
  Player(Table& table, uint64_t number)
      : t_(table), number_(number), random_(table.game.seed, RandomSite::shuffle, number) {}

  void play() {
    const auto stream = t_.device->create_stream({});
    try {
      for (int32_t step = 0; step < t_.game.steps; ++step) {
        switch (below(10)) {
          case 0: apply(); break;
          case 1: change(own(), HomeChange::updated); break;
          case 2: change(own(), HomeChange::accumulated); break;
          case 3: bring_home(own()); break;
          case 4:
            t_.residency->expect(any(), static_cast<Position>(step) + below(20));
            t_.residency->advance(step);
            break;
          default: use(*stream);
        }
      }
    } catch (const Error&) {
      ended_by_error = true;
    }
  }
  bool ended_by_error = false;

 private:
  int32_t below(uint64_t n) { return static_cast<int32_t>(random_.below(draw_++, n)); }
  BlockId any() { return below(static_cast<uint64_t>(t_.game.shape.experts)); }
  BlockId own() {
    const auto half = static_cast<uint64_t>(t_.game.shape.experts) / 2;
    return 2 * below(half) + static_cast<BlockId>(number_);
  }
  void expect(bool holds) {
    if (!holds) ++t_.faults;
  }

  void apply() {
    Wants wants;
    for (int n = below(4); n > 0; --n) {
      wants.load.push_back({any(), static_cast<Priority>(below(3)), below(3), below(2) == 0});
    }
    if (below(2) == 0) wants.drop.push_back(any());
    t_.residency->apply(wants);
  }

  void use(Stream& stream) {
    std::vector<BlockId> blocks = {own()};
    const bool with_gradient = below(2) == 0;
    if (!with_gradient) blocks.push_back(any());
    if (blocks.size() == 2 && blocks[0] == blocks[1]) blocks.pop_back();
    std::ranges::sort(blocks);
    std::vector<std::shared_lock<std::shared_mutex>> held;
    for (const BlockId b : blocks) held.emplace_back(t_.mutexes[static_cast<size_t>(b)]);
    const Lease lease = t_.residency->lease(blocks, with_gradient, below(2) == 0);
    const bool waits = below(8) > 0;  // else it is released unseen
    if (waits) t_.residency->wait(lease, stream);
    for (const LeasedBlock& block : lease.blocks) {
      if (!waits) break;
      expect(t_.homes.has_weights(t_.residency->weights(block.block), block.weights));
      if (block.gradient == nullptr) continue;
      float& added = t_.added[static_cast<size_t>(block.block)];
      const SlotLayout& layout = t_.residency->gradient(block.block);
      expect(ResidencyHomes::is_all(layout, block.gradient, added));
      ResidencyHomes::add(layout, block.gradient, 1);
      ++added;
    }
    t_.residency->release(lease, stream);
  }

  void bring_home(BlockId expert) {
    const BlockId block = t_.trained(expert);
    t_.residency->bring_home(block, block + 1)->synchronize();
    expect(t_.homes.gradient_is(block, t_.added[static_cast<size_t>(block)]));
  }

  void change(BlockId expert, HomeChange change) {
    const BlockId block = t_.trained(expert);
    const std::unique_lock lock(t_.mutexes[static_cast<size_t>(expert)]);
    bring_home(expert);
    t_.residency->begin_change(block, block + 1, change);
    if (change == HomeChange::updated) {
      t_.homes.update(block);
      t_.added[static_cast<size_t>(block)] = 0;
    } else {
      t_.homes.add_to_gradient(block, 3);
      t_.added[static_cast<size_t>(block)] += 3;
    }
    t_.residency->changed(block, block + 1, change);
  }

  Table& t_;
  const uint64_t number_;
  Random random_;
  uint64_t draw_ = 0;
};

/// Returns whether an error ended the game.
bool play(const Game& game) {
  INFO("seed " << game.seed);
  Table table(game);
  table.residency->keep_trace();
  Player players[2] = {{table, 0}, {table, 1}};
  {
    std::vector<std::jthread> threads;
    for (Player& player : players) threads.emplace_back([&player] { player.play(); });
    if (game.stop_after_us >= 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(game.stop_after_us));
      table.residency->stop(std::make_exception_ptr(numeric_error("the loss is not finite")));
    }
  }
  CHECK(table.faults == 0);
  const bool ended = players[0].ended_by_error || players[1].ended_by_error;
  if (ended || game.stop_after_us >= 0) return ended;

  for (BlockId expert = 0; expert < game.shape.experts; ++expert) {
    const BlockId block = table.trained(expert);
    table.residency->bring_home(block, block + 1)->synchronize();
    CHECK(table.homes.gradient_is(block, table.added[static_cast<size_t>(block)]));
  }
  std::vector<SlotClass> none = table.plan.classes;
  for (SlotClass& of : none) of.slots = 0;
  const ShrinkReport report = table.residency->shrink(none, "the end");
  CHECK(report.open_bytes > 0);  // the least of each class
  uint64_t in = 0, out = 0;
  for (const LoadTime& load : table.residency->take_trace()) {
    CHECK(load.end >= load.begin);
    (load.in ? in : out) += load.bytes;
  }
  // Every byte that crossed the link is counted. What was cancelled between pieces is in the sums
  // alone, not in the trace.
  table.residency->stop(std::make_exception_ptr(std::logic_error("the end")));
  const ResidencyCounts counts = table.residency->counts();
  CHECK(counts.bytes_in == table.device->copied(StreamUse::copy_in));
  CHECK(counts.bytes_out == table.device->copied(StreamUse::copy_out));
  CHECK(in <= counts.bytes_in);
  CHECK(out == counts.bytes_out);
  return false;
}

constexpr uint64_t kSeeds = kSanitized ? 4 : 20;

TEST_CASE("residency: two threads at random", "[residency]") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) CHECK_FALSE(play({.seed = seed}));
}

TEST_CASE("residency: two threads at random, paced links", "[residency]") {
  for (uint64_t seed = 1; seed <= kSeeds / 2; ++seed) {
    CHECK_FALSE(play({.seed = seed, .steps = 60, .device = paced(20e6, 10e6)}));
  }
}

TEST_CASE("residency: two threads at random, delays", "[residency]") {
  for (uint64_t seed = 1; seed <= kSeeds / 2; ++seed) {
    CHECK_FALSE(play({.seed = seed, .steps = 60, .most_delay_us = 200}));
  }
}

TEST_CASE("residency: two threads at random, adapters", "[residency]") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CHECK_FALSE(
        play({.seed = seed, .shape = {.experts = 7, .hidden = 32, .width = 16, .rank = 2}}));
  }
}

TEST_CASE("residency: two threads at random, mixed roles, pinned in part", "[residency]") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    HomeShape shape = {.experts = 7, .hidden = 32, .width = 16};
    shape.freezes_gate = true;
    CHECK_FALSE(play({.seed = seed, .shape = shape, .may_pin = static_cast<int64_t>(seed) * 4096}));
  }
}

TEST_CASE("residency: a shutdown at any point joins", "[residency]") {
  for (uint64_t seed = 1; seed <= 4 * kSeeds; ++seed) {
    CHECK(play({.seed = seed,
                .steps = 1'000'000,
                .device = paced(seed % 2 == 0 ? 20e6 : 0),
                .most_delay_us = seed % 3 == 0 ? 100 : 0,
                .stop_after_us = static_cast<int>(seed * 137 % 4000)}));
  }
}

TEST_CASE("residency: a copy fails at any point", "[residency]") {
  for (uint64_t seed = 1; seed <= 4 * kSeeds; ++seed) {
    CHECK(play({.seed = seed,
                .steps = 1'000'000,
                .may_pin = seed % 2 == 0 ? 0 : int64_t{1} << 60,
                .fail_copy = static_cast<int64_t>(1 + seed * seed % 300)}));
  }
}

TEST_CASE("residency: it is destroyed while loads are under way", "[residency]") {
  for (uint64_t seed = 1; seed <= 4 * kSeeds; ++seed) {
    Table table({.seed = seed, .device = paced(20e6, 20e6)});
    const auto stream = table.device->create_stream({});
    const BlockId blocks[] = {0, 1};
    const Lease lease = table.residency->lease(blocks, true);
    table.residency->release(lease, *stream);  // before it has arrived
    if (seed % 2 == 0) table.residency->bring_home(0, 2);
    Wants wants;
    for (BlockId block = 2; block < 7; ++block) wants.load.push_back({block, Priority::stage});
    table.residency->apply(wants);
    std::this_thread::sleep_for(std::chrono::microseconds(seed * 61 % 1500));
    table.residency.reset();
  }
}

}  // namespace
}  // namespace hearth::test
