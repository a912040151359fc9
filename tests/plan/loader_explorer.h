// Explores the interleavings of a loader's users: scripts of tasks and planners, and two links. An
// actor runs until it is blocked, or until another preempts it.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <exception>
#include <functional>
#include <string>

#include "plan/loader_world.h"

namespace hearth::test {

/// A step of a script: may it be done, and doing it.
struct Step {
  std::function<bool(const LoaderWorld&)> can;
  std::function<void(LoaderWorld&)> act;
};
using Script = std::vector<Step>;

namespace loader_steps {

inline Step always(std::function<void(LoaderWorld&)> act) {
  return {[](const LoaderWorld&) { return true; }, std::move(act)};
}
inline Step want(ItemId item, Priority priority, int32_t rank = 0) {
  return always([=](LoaderWorld& w) { w.want({item, priority, rank}); });
}
inline Step remove(ItemId item) {
  return always([=](LoaderWorld& w) { w.remove(item); });
}
inline Step drop(ItemId item) {
  return always([=](LoaderWorld& w) { w.drop(item); });
}
inline Step expect(ItemId item, Position next_use) {
  return always([=](LoaderWorld& w) { w.expect(item, next_use); });
}
inline Step advance(Position now) {
  return always([=](LoaderWorld& w) { w.advance(now); });
}
inline Step demand(UseId use, std::vector<Need> needs, Start start = Start::arrived) {
  return always([=](LoaderWorld& w) { w.demand(use, needs, start); });
}
/// Waits for the use, computes and ends it. A shutdown refuses uses.
inline Step compute(UseId use) {
  return {[=](const LoaderWorld& w) {
            return w.can_end(use) || w.state(use) == LoaderWorld::UseState::refused;
          },
          [=](LoaderWorld& w) {
            if (w.can_end(use)) w.end_use(use);
          }};
}
inline Step update(ItemId item, bool is_zero = false) {
  return {[=](const LoaderWorld& w) { return w.can_update(item) || w.has_ended(); },
          [=](LoaderWorld& w) {
            if (w.can_update(item)) w.updated(item, is_zero);
          }};
}
/// The update of a home in two steps, as a task that writes it.
inline Step begin_update(ItemId item) {
  return {[=](const LoaderWorld& w) { return w.can_update(item) || w.has_ended(); },
          [=](LoaderWorld& w) {
            if (w.can_update(item)) w.begin_update(item);
          }};
}
inline Step update_if_possible(ItemId item) {
  return always([=](LoaderWorld& w) {
    if (w.can_update(item)) w.updated(item, false);
  });
}
inline Step bring_home(ItemId item) {
  return always([=](LoaderWorld& w) { w.bring_home(item); });
}
inline Step wait_home(ItemId item) {
  return {[=](const LoaderWorld& w) { return !w.asked_home(item) || w.has_ended(); },
          [](LoaderWorld&) {}};
}
inline Step shrink(const std::vector<int32_t>& slots) {
  return always([=](LoaderWorld& w) { w.shrink(slots); });
}
inline Step shut_down(Ending ending) {
  return always([=](LoaderWorld& w) { w.shut_down(ending); });
}

}  // namespace loader_steps

/// All interleavings of the scripts with at most so many preemptions, with links that read early
/// and late. A fault fails the test with the order of actors: scripts, link in, link out.
class LoaderExplorer {
 public:
  LoaderExplorer(const LoaderCase& c, std::vector<Script> scripts, int most_preemptions = 3)
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

}  // namespace hearth::test
