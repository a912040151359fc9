// The simulator's events: streams, dependencies, shared resources, deadlocks. By hand and against
// slower ways to the same results.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "base/random.h"
#include "plan/event_simulation.h"
#include "plan/fair_shares.h"

namespace hearth::test {
namespace {

using Catch::Approx;

TaskLoad alone(double seconds) { return {seconds}; }
TaskLoad passes(double amount, std::array<int32_t, 4> through, double seconds = 0) {
  return {seconds, amount, through};
}

TEST_CASE("simulation: a task waits for its stream and for what it follows") {
  // Stream 0: 0 1 2; stream 1: 3 4. Task 3 follows 0, and 2 follows 4.
  const EventSimulation simulation({{0, 1, 2}, {3, 4}}, {{}, {}, {4}, {0}, {}});
  const std::vector<TaskLoad> loads = {alone(2), alone(1), alone(5), alone(4), alone(8)};
  const EventTimes times = simulation.run(loads, {});
  CHECK(times.begin == std::vector<double>{0, 2, 14, 2, 6});
  CHECK(times.end == std::vector<double>{2, 3, 19, 6, 14});
  CHECK(times.last == 19);
  CHECK(times.order.front() == 0);
  CHECK(times.order.back() == 2);
  CHECK(simulation.deadlock().empty());
}

TEST_CASE("simulation: who follows an idle task does not wait for its stream") {
  // 1 and 2 stand behind 0 in their stream. 1 follows 4; 2 follows 1; 5 follows 2; 6 follows 0.
  const EventSimulation simulation({{0, 1, 2, 3}, {4}, {5}, {6}}, {{}, {4}, {1}, {}, {}, {2}, {0}});
  std::vector<TaskLoad> loads = {{10}, {5}, {5}, {1}, {2}, {3}, {1}};
  EventTimes times = simulation.run(loads, {});
  CHECK(times.begin == std::vector<double>{0, 10, 15, 20, 0, 20, 10});
  CHECK(times.last == 23);
  const std::vector<uint8_t> idle = {0, 1, 1, 0, 0, 0, 0};
  times = simulation.run(loads, {}, nullptr, idle);
  CHECK(times.begin == std::vector<double>{0, 10, 10, 10, 0, 2, 10});
  CHECK(times.end == std::vector<double>{10, 10, 10, 11, 2, 5, 11});
  CHECK(times.last == 11);
  CHECK(times.order.size() == loads.size());
  // The stream waits for what an idle task follows.
  loads[4].seconds = 20;
  times = simulation.run(loads, {}, nullptr, idle);
  CHECK(times.begin == std::vector<double>{0, 20, 20, 20, 0, 20, 10});
  CHECK(times.last == 23);
  // An idle task that follows nothing is no reason to wait.
  const EventSimulation free({{0, 1}, {2}}, {{}, {}, {1}});
  times =
      free.run(std::vector<TaskLoad>{{4}, {9}, {1}}, {}, nullptr, std::vector<uint8_t>{0, 1, 0});
  CHECK(times.begin == std::vector<double>{0, 4, 0});
  CHECK(times.last == 4);
}

TEST_CASE("simulation: tasks without time end when they begin") {
  const EventSimulation simulation({{0, 1, 2}, {3}}, {{}, {3}, {}, {}});
  const EventTimes times = simulation.run(std::vector{alone(0), alone(0), alone(1), alone(3)}, {});
  CHECK(times.begin == std::vector<double>{0, 3, 3, 0});
  CHECK(times.end == std::vector<double>{0, 3, 4, 3});
  CHECK(EventSimulation({}, {}).run({}, {}).last == 0);
}

TEST_CASE("simulation: flows share a resource evenly, and take what others leave") {
  // Links 0 and 1 below root 2.
  const std::vector<double> rates = {10, 10, 12};
  const EventSimulation two({{0}, {1}}, {{}, {}});
  // Both get 6 of the root. When the first has passed 60, the other has 10 of its link.
  EventTimes times =
      two.run(std::vector{passes(60, {0, 2, -1, -1}), passes(100, {1, 2, -1, -1})}, rates);
  CHECK(times.end[0] == Approx(10));
  CHECK(times.end[1] == Approx(10 + 40 / 10.0));
  // A slow link leaves the root's rest to the other.
  const std::vector<double> slow = {2, 10, 11};
  times = two.run(std::vector{passes(20, {0, 2, -1, -1}), passes(90, {1, 2, -1, -1})}, slow);
  CHECK(times.end[0] == Approx(10));
  CHECK(times.end[1] == Approx(10));
  // Latency is not shared: the second has the link to itself until the first comes.
  times = two.run(std::vector{passes(10, {0, -1, -1, -1}, 3), passes(40, {0, -1, -1, -1})}, rates);
  CHECK(times.end[0] == Approx(5));
  CHECK(times.end[1] == Approx(5));
  CHECK(times.begin[0] == 0);
  // Without a limit nothing is waited for.
  times = two.run(std::vector{passes(10, {0, 1, -1, -1}, 3), passes(40, {-1, -1, -1, -1})},
                  std::vector<double>{0, 0});
  CHECK(times.end == std::vector<double>{3, 0});
}

/// Holds task 1 until 30 have passed, which begins when task 0 has ended; counts what it hears.
struct PassingGuest final : SimulationGuest {
  bool has_passed = false;
  std::vector<int32_t> held, heard;
  bool may_begin(int32_t task, Stage&) override {
    if (task != 1 || has_passed) return true;
    held.push_back(task);
    return false;
  }
  void ended(int32_t task, Stage& stage) override {
    heard.push_back(task);
    if (task == 0) stage.pass(5, {1, 30, {0, -1, -1, -1}});
  }
  void passed(int32_t ticket, Stage& stage) override {
    CHECK(ticket == 5);
    CHECK(stage.now() == Approx(9));
    has_passed = true;
    for (const int32_t task : held) stage.release(task);
  }
};

TEST_CASE("simulation: a guest holds tasks back, and shares resources with them") {
  // Stream 0: 0 1; stream 1: 2, which passes 40 through the resource from 2 on.
  const EventSimulation simulation({{0, 1}, {2}}, {{}, {}, {}});
  const std::vector<TaskLoad> loads = {alone(2), alone(3), passes(40, {0, -1, -1, -1}, 2)};
  const std::vector<double> rates = {10};
  PassingGuest guest;
  const EventTimes times = simulation.run(loads, rates, &guest);
  // From 2 to 3 the task has the resource alone, then both get half of it: both need 6 s more.
  CHECK(times.end[2] == Approx(9));
  CHECK(times.begin[1] == Approx(9));
  CHECK(times.last == Approx(12));
  CHECK(guest.held == std::vector<int32_t>{1});
  CHECK(guest.heard.size() == 3);
  CHECK(simulation.run(loads, rates).end[1] == Approx(5));
}

/// Random tasks in streams, each following some earlier ones.
struct RandomTasks {
  std::vector<std::vector<int32_t>> streams, after;
  std::vector<TaskLoad> loads;
  std::vector<double> rates;

  explicit RandomTasks(uint64_t seed, bool whole_streams = true) {
    const Random random(seed, RandomSite::shuffle, 41);
    uint64_t draw = 0;
    const auto below = [&](uint64_t n) { return random.below(draw++, n); };
    const size_t n = 1 + below(60), of_streams = 1 + below(7), resources = 1 + below(8);
    streams.resize(of_streams);
    for (size_t r = 0; r < resources; ++r) {
      rates.push_back(below(5) == 0 ? 0 : 1 + static_cast<double>(below(20)));
    }
    for (size_t t = 0; t < n; ++t) {
      streams[below(of_streams)].push_back(static_cast<int32_t>(t));
      after.emplace_back();
      for (uint64_t i = below(3); i > 0 && t > 0; --i) {
        after.back().push_back(static_cast<int32_t>(below(t)));
      }
      TaskLoad load;
      if (below(4) > 0) load.seconds = static_cast<double>(below(50)) / 8;
      if (below(2) == 0) {
        load.amount = static_cast<double>(below(400)) / 8;
        std::vector<int32_t> all(resources);
        for (size_t r = 0; r < resources; ++r) all[r] = static_cast<int32_t>(r);
        for (size_t i = 0; i < std::min<size_t>(resources, 1 + below(4)); ++i) {
          std::swap(all[i], all[i + below(resources - i)]);
          load.through[i] = all[i];
        }
      }
      loads.push_back(load);
    }
    if (whole_streams) return;
    for (std::vector<int32_t>& stream : streams) {  // any order of issue
      if (below(3) > 0) continue;
      for (size_t i = stream.size(); i > 1; --i) std::swap(stream[i - 1], stream[below(i)]);
    }
  }
};

TEST_CASE("simulation: no task begins early, and none waits without a reason") {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    const RandomTasks tasks(seed);
    const EventTimes times =
        EventSimulation(tasks.streams, tasks.after).run(tasks.loads, tasks.rates);
    for (const std::vector<int32_t>& stream : tasks.streams) {
      for (size_t i = 0; i < stream.size(); ++i) {
        const auto t = static_cast<size_t>(stream[i]);
        double ready = i > 0 ? times.end[static_cast<size_t>(stream[i - 1])] : 0;
        for (const int32_t b : tasks.after[t]) {
          ready = std::max(ready, times.end[static_cast<size_t>(b)]);
        }
        CHECK(times.begin[t] == ready);
        // No resource passes faster than it can.
        double least = tasks.loads[t].seconds;
        double slowest = 0;
        for (const int32_t r : tasks.loads[t].through) {
          if (r < 0 || tasks.rates[static_cast<size_t>(r)] == 0) continue;
          slowest = std::max(slowest, tasks.loads[t].amount / tasks.rates[static_cast<size_t>(r)]);
        }
        least += slowest;
        CHECK(times.end[t] - times.begin[t] >= least * (1 - 1e-9));
      }
    }
    CHECK(std::ranges::is_sorted(times.order, {},
                                 [&](int32_t t) { return times.begin[static_cast<size_t>(t)]; }));
    CHECK(times.last == *std::ranges::max_element(times.end));
    // Nor does all that passes a resource.
    for (size_t r = 0; r < tasks.rates.size(); ++r) {
      if (tasks.rates[r] == 0) continue;
      double amount = 0;
      for (const TaskLoad& load : tasks.loads) {
        if (std::ranges::find(load.through, static_cast<int32_t>(r)) != load.through.end()) {
          amount += load.amount;
        }
      }
      CHECK(times.last >= amount / tasks.rates[r] * (1 - 1e-9));
    }
  }
}

/// The same by small steps of time: rates are shared anew in each.
double by_small_steps(const RandomTasks& tasks, double dt) {
  const size_t n = tasks.loads.size();
  std::vector<double> seconds(n), amount(n);
  std::vector<bool> ended(n), limited(n);
  for (size_t t = 0; t < n; ++t) {
    seconds[t] = tasks.loads[t].seconds;
    amount[t] = tasks.loads[t].amount;
    limited[t] = std::ranges::any_of(tasks.loads[t].through, [&](int32_t r) {
      return r >= 0 && tasks.rates[static_cast<size_t>(r)] > 0;
    });
  }
  FairShares shares(tasks.rates);
  std::vector<size_t> at(tasks.streams.size());
  for (int64_t step = 0;; ++step) {
    std::vector<Flow> flows;
    std::vector<size_t> waiting;
    for (bool again = true; again;) {  // until nothing else ends at this time
      again = false;
      flows.clear();
      waiting.clear();
      for (size_t s = 0; s < at.size(); ++s) {
        if (at[s] == tasks.streams[s].size()) continue;
        const auto t = static_cast<size_t>(tasks.streams[s][at[s]]);
        if (std::ranges::any_of(tasks.after[t],
                                [&](int32_t b) { return !ended[static_cast<size_t>(b)]; })) {
          continue;
        }
        if (seconds[t] > 0) {
          waiting.push_back(t);
        } else if (limited[t] && amount[t] > 0) {
          flows.push_back({static_cast<int32_t>(t), tasks.loads[t].through, 0, 0, 0});
        } else {
          ended[t] = true;
          ++at[s];
          again = true;
        }
      }
    }
    if (flows.empty() && waiting.empty()) return static_cast<double>(step) * dt;
    for (const size_t t : waiting) seconds[t] -= dt;
    shares.divide(flows);
    for (const Flow& flow : flows) amount[static_cast<size_t>(flow.task)] -= flow.rate * dt;
  }
}

TEST_CASE("simulation: small steps of time come to the same end") {
  constexpr double dt = 1.0 / 512;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    const RandomTasks tasks(seed);
    const double exact =
        EventSimulation(tasks.streams, tasks.after).run(tasks.loads, tasks.rates).last;
    // Each task ends up to two steps late, and what follows begins late.
    const double late = 2 * dt * static_cast<double>(tasks.loads.size());
    CHECK(by_small_steps(tasks, dt) >= exact - late);
    CHECK(by_small_steps(tasks, dt) <= exact + late);
  }
}

TEST_CASE("fair shares: no flow could have more without taking it from one that has less") {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    INFO("seed " << seed);
    const RandomTasks tasks(seed);
    std::vector<Flow> flows;
    for (const TaskLoad& load : tasks.loads) {
      const bool limited = std::ranges::any_of(load.through, [&](int32_t r) {
        return r >= 0 && tasks.rates[static_cast<size_t>(r)] > 0;
      });
      if (limited) flows.push_back({0, load.through, 1, 0, 0});
    }
    FairShares shares(tasks.rates);
    shares.divide(flows);
    const auto first = flows;
    shares.divide(flows);  // nothing is left of the division before
    std::vector<double> sum(tasks.rates.size()), most(tasks.rates.size());
    for (size_t i = 0; i < flows.size(); ++i) {
      CHECK(flows[i].rate == first[i].rate);
      CHECK(flows[i].rate > 0);
      for (const int32_t r : flows[i].through) {
        if (r < 0) continue;
        sum[static_cast<size_t>(r)] += flows[i].rate;
        most[static_cast<size_t>(r)] = std::max(most[static_cast<size_t>(r)], flows[i].rate);
      }
    }
    for (size_t r = 0; r < sum.size(); ++r) {
      if (tasks.rates[r] > 0) CHECK(sum[r] <= tasks.rates[r] * (1 + 1e-9));
    }
    // Each flow has a full resource on which no flow has more.
    for (const Flow& flow : flows) {
      CHECK(std::ranges::any_of(flow.through, [&](int32_t r) {
        if (r < 0 || tasks.rates[static_cast<size_t>(r)] == 0) return false;
        const auto at = static_cast<size_t>(r);
        return sum[at] >= tasks.rates[at] * (1 - 1e-9) && flow.rate >= most[at] * (1 - 1e-9);
      }));
    }
  }
}

TEST_CASE("simulation: tasks that wait for each other are found, and only they") {
  // 0 waits for 3, 3 comes after 2 in its stream, and 2 waits for 1, which comes after 0.
  const EventSimulation simulation({{0, 1}, {2, 3}, {4}}, {{3}, {}, {1}, {}, {1}});
  std::vector<int32_t> circle = simulation.deadlock();
  std::ranges::sort(circle);
  CHECK(circle == std::vector<int32_t>{0, 1, 2, 3});
  CHECK_THROWS_AS(simulation.run(std::vector<TaskLoad>(5), {}), std::logic_error);

  int stuck = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    INFO("seed " << seed);
    const RandomTasks tasks(seed, false);
    const EventSimulation random(tasks.streams, tasks.after);
    // Streams that issue what they can, again and again, as threads would.
    const size_t n = tasks.loads.size();
    std::vector<bool> ended(n);
    std::vector<size_t> at(tasks.streams.size());
    size_t count = 0;
    for (bool again = true; again;) {
      again = false;
      for (size_t s = 0; s < at.size(); ++s) {
        if (at[s] == tasks.streams[s].size()) continue;
        const auto t = static_cast<size_t>(tasks.streams[s][at[s]]);
        if (!std::ranges::all_of(tasks.after[t],
                                 [&](int32_t b) { return ended[static_cast<size_t>(b)]; })) {
          continue;
        }
        ended[t] = again = true;
        ++at[s];
        ++count;
      }
    }
    const std::vector<int32_t> found = random.deadlock();
    CHECK(found.empty() == (count == n));
    if (found.empty()) {
      CHECK_NOTHROW(random.run(tasks.loads, tasks.rates));
      continue;
    }
    ++stuck;
    CHECK_THROWS_AS(random.run(tasks.loads, tasks.rates), std::logic_error);
    // Each waits for the next one: it follows it, or comes right after it in its stream.
    for (size_t i = 0; i < found.size(); ++i) {
      const int32_t task = found[i], next = found[(i + 1) % found.size()];
      const auto& after = tasks.after[static_cast<size_t>(task)];
      const bool follows = std::ranges::find(after, next) != after.end();
      const bool issued_after = std::ranges::any_of(tasks.streams, [&](const auto& stream) {
        const auto here = std::ranges::find(stream, task);
        return here != stream.end() && here != stream.begin() && *(here - 1) == next;
      });
      CHECK((follows || issued_after));
    }
  }
  CHECK(stuck > 50);
  CHECK(stuck < 550);
}

TEST_CASE("simulation: it refuses streams that do not hold each task once") {
  const auto make = [](std::vector<std::vector<int32_t>> streams,
                       std::vector<std::vector<int32_t>> after) {
    return EventSimulation(std::move(streams), std::move(after));
  };
  CHECK_THROWS_AS(make({{0, 0}}, {{}, {}}), std::logic_error);
  CHECK_THROWS_AS(make({{0}}, {{}, {}}), std::logic_error);
  CHECK_THROWS_AS(make({{0, 2}}, {{}, {}}), std::logic_error);
  CHECK_THROWS_AS(make({{0, 1}}, {{}, {5}}), std::logic_error);
  CHECK_THROWS_AS(make({{0}}, {{}}).run({}, {}), std::logic_error);
}

}  // namespace
}  // namespace hearth::test
