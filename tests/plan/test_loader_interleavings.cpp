// All interleavings with up to three preemptions of small cases of the loader: tasks, a planner and
// two links, each a script. An actor runs until it is blocked, or until another preempts it.
#include <catch2/catch_test_macros.hpp>
#include <exception>
#include <functional>
#include <string>

#include "base/random.h"
#include "base/sanitized.h"
#include "plan/loader_world.h"

namespace hearth::test {
namespace {

/// A step of a script: may it be done, and doing it.
struct Step {
  std::function<bool(const LoaderWorld&)> can;
  std::function<void(LoaderWorld&)> act;
};
using Script = std::vector<Step>;

Step always(std::function<void(LoaderWorld&)> act) {
  return {[](const LoaderWorld&) { return true; }, std::move(act)};
}
Step want(ItemId item, Priority priority, int32_t rank = 0) {
  return always([=](LoaderWorld& w) { w.want({item, priority, rank}); });
}
Step remove(ItemId item) {
  return always([=](LoaderWorld& w) { w.remove(item); });
}
Step drop(ItemId item) {
  return always([=](LoaderWorld& w) { w.drop(item); });
}
Step expect(ItemId item, Position next_use) {
  return always([=](LoaderWorld& w) { w.expect(item, next_use); });
}
Step advance(Position now) {
  return always([=](LoaderWorld& w) { w.advance(now); });
}
Step demand(UseId use, std::vector<Need> needs, Start start = Start::arrived) {
  return always([=](LoaderWorld& w) { w.demand(use, needs, start); });
}
/// Waits for the use, computes and ends it. A shutdown refuses uses.
Step compute(UseId use) {
  return {[=](const LoaderWorld& w) {
            return w.can_end(use) || w.state(use) == LoaderWorld::UseState::refused;
          },
          [=](LoaderWorld& w) {
            if (w.can_end(use)) w.end_use(use);
          }};
}
Step update(ItemId item, bool is_zero = false) {
  return {[=](const LoaderWorld& w) { return w.can_update(item) || w.has_ended(); },
          [=](LoaderWorld& w) {
            if (w.can_update(item)) w.updated(item, is_zero);
          }};
}
Step update_if_possible(ItemId item) {
  return always([=](LoaderWorld& w) {
    if (w.can_update(item)) w.updated(item, false);
  });
}
Step bring_home(ItemId item) {
  return always([=](LoaderWorld& w) { w.bring_home(item); });
}
Step wait_home(ItemId item) {
  return {[=](const LoaderWorld& w) { return !w.asked_home(item) || w.has_ended(); },
          [](LoaderWorld&) {}};
}
Step shrink(size_t budget) {
  return always([=](LoaderWorld& w) { w.shrink(budget); });
}
Step shut_down(Ending ending) {
  return always([=](LoaderWorld& w) { w.shut_down(ending); });
}

class Explorer {
 public:
  Explorer(const LoaderCase& c, std::vector<Script> scripts, int most_preemptions = 3)
      : scripts_(std::move(scripts)), most_preemptions_(most_preemptions) {
    for (const bool reads_late : {false, true}) {
      explore({LoaderWorld(c, reads_late), std::vector<size_t>(scripts_.size())}, -1, 0);
    }
  }
  uint64_t interleavings() const { return interleavings_; }

 private:
  struct State {
    LoaderWorld world;
    std::vector<size_t> at;  // the next step of each script
  };

  // The scripts, then the link in and the link out.
  int actors() const { return static_cast<int>(scripts_.size()) + 2; }
  bool is_link(int actor) const { return actor >= static_cast<int>(scripts_.size()); }
  bool is_link_in(int actor) const { return actor == static_cast<int>(scripts_.size()); }
  bool can_act(const State& state, int actor) const {
    if (is_link(actor)) return state.world.in_flight(is_link_in(actor)) > 0;
    const Script& script = scripts_[static_cast<size_t>(actor)];
    const size_t at = state.at[static_cast<size_t>(actor)];
    return at < script.size() && script[at].can(state.world);
  }
  void act(State& state, int actor) const {
    if (is_link(actor)) {
      state.world.finish_piece(is_link_in(actor));
    } else {
      const size_t at = state.at[static_cast<size_t>(actor)]++;
      scripts_[static_cast<size_t>(actor)][at].act(state.world);
    }
  }

  void explore(State state, int current, int preemptions) {
    for (;;) {
      const bool goes_on = current >= 0 && can_act(state, current);
      std::vector<int> others;
      for (int actor = 0; actor < actors(); ++actor) {
        if (actor != current && can_act(state, actor)) others.push_back(actor);
      }
      const bool may_switch = !goes_on || preemptions < most_preemptions_;
      if (!goes_on && others.empty()) break;
      for (size_t i = goes_on ? 0 : 1; may_switch && i < others.size(); ++i) {
        State other = state;
        path_.push_back(others[i]);
        const size_t length = path_.size();
        step(other, others[i]);
        explore(std::move(other), others[i], preemptions + (goes_on ? 1 : 0));
        path_.resize(length - 1);
      }
      if (!goes_on) current = others.front();
      path_.push_back(current);
      step(state, current);
    }
    ++interleavings_;
    for (size_t s = 0; s < scripts_.size(); ++s) {
      if (state.at[s] < scripts_[s].size()) fail("a script waits forever");
    }
    try {
      state.world.check_at_rest();
    } catch (const std::exception& e) {
      fail(e.what());
    }
  }

  void step(State& state, int actor) const {
    try {
      act(state, actor);
    } catch (const std::exception& e) {
      fail(e.what());
    }
  }

  void fail(const std::string& what) const {
    std::string order;
    for (const int actor : path_) {
      order += ' ';
      order += std::to_string(actor);
    }
    FAIL(what << "; actors:" << order);
  }

  std::vector<Script> scripts_;
  int most_preemptions_;
  std::vector<int> path_;
  uint64_t interleavings_ = 0;
};

void explore(const LoaderCase& c, std::vector<Script> scripts, uint64_t least) {
  const int preemptions = kSanitized ? 2 : 3;
  const Explorer explorer(c, std::move(scripts), preemptions);
  INFO(explorer.interleavings() << " interleavings");
  CHECK(explorer.interleavings() >= (kSanitized ? 20 : least));
}

constexpr Need reads(ItemId item) { return {item, Access::read}; }
constexpr Need writes(ItemId item) { return {item, Access::write}; }

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
           {want(2, Priority::layer), shrink(4), shrink(1)}},
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
    interleavings += Explorer(c, std::move(scripts), preemptions).interleavings();
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
