// Steps of several ranks message by message: by hand, and what holds for all messages.
#include <algorithm>
#include <array>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "base/random.h"
#include "plan/kind_costs.h"
#include "plan/message_simulation.h"

namespace hearth::test {
namespace {

using Catch::Approx;

constexpr double kLink = 1e6;  // bytes per second

/// Tasks by hand, one after the other on a stream. Links pass a megabyte a second each way.
struct HandRanks {
  explicit HandRanks(int32_t count) : ranks(count), links(count, {kLink, 0}) {}

  void compute(double seconds, int32_t stream = 0) { add(TaskKind::norm, seconds, stream); }
  /// `megabytes`: {from, to, how many}.
  void talk(const std::vector<std::array<double, 3>>& megabytes, int32_t stream = 0,
            double seconds = 0) {
    Collective collective{Traffic(ranks), std::vector<int32_t>(static_cast<size_t>(ranks)), 0};
    for (const auto& [from, to, amount] : megabytes) {
      collective.traffic.add(static_cast<int32_t>(from), static_cast<int32_t>(to), kLink * amount);
    }
    collectives.push_back(std::move(collective));
    add(TaskKind::gather, seconds, stream);
  }
  void add(TaskKind kind, double seconds, int32_t stream) {
    while (std::ssize(schedule.streams) <= stream) schedule.streams.push_back({"more", kHostPlace});
    Task task;
    task.kind = kind;
    task.stream = stream;
    schedule.tasks.push_back(task);
    demands.push_back({seconds});
  }
  SimulatedStep run() const { return simulate_messages(schedule, {}, demands, collectives, links); }
  /// All ranks wait for the busiest link in each collective.
  SimulatedStep run_together() const {
    std::vector<TaskDemand> together = demands;
    for (size_t t = 0, c = 0; t < together.size(); ++t) {
      if (!kind_costs(schedule.tasks[t].kind).talks) continue;
      together[t].between_s = links.busy_s(collectives[c++].traffic);
    }
    return Simulator(schedule, {}).run(together);
  }

  int32_t ranks;
  RankLinks links;
  Schedule schedule;
  std::vector<TaskDemand> demands;
  std::vector<Collective> collectives;
};

const TaskTime& time_of(const SimulatedStep& step, TaskId task) {
  return *std::ranges::find(step.trace, task, &TaskTime::task);
}

/// Any collectives between any computation, of any number of ranks.
HandRanks any_ranks(uint64_t seed, int32_t streams) {
  const Random random(seed, RandomSite::shuffle, 7);
  uint64_t drawn = 0;
  const auto below = [&](uint64_t bound) {
    return static_cast<int32_t>(random.below(drawn++, bound));
  };
  HandRanks ranks(2 + below(7));
  const int32_t tasks = 2 + below(12);
  for (int32_t t = 0; t < tasks; ++t) {
    const int32_t stream = below(static_cast<uint64_t>(streams));
    if (below(2) == 0) {
      ranks.compute(random.uniform(drawn++), stream);
      continue;
    }
    std::vector<std::array<double, 3>> messages;
    for (int32_t i = below(12); i > 0; --i) {
      const auto all = static_cast<uint64_t>(ranks.ranks);
      const double from = below(all), to = below(all);
      messages.push_back({from, to, random.uniform(drawn++)});
    }
    ranks.talk(messages, stream, 0.1 * random.uniform(drawn++));
  }
  return ranks;
}

TEST_CASE("messages: ranks that have passed theirs go on\\, and wait in the next collective") {
  HandRanks ranks(4);
  ranks.talk({{2, 3, 1}});
  ranks.compute(1);
  ranks.talk({{0, 1, 1}});
  ranks.compute(0.25);
  const SimulatedStep step = ranks.run();
  CHECK(step.time_s == Approx(2.25).epsilon(1e-3));
  CHECK(ranks.run_together().time_s == Approx(3.25).epsilon(1e-3));
  // The trace is that of rank 0.
  CHECK(time_of(step, 1).begin == Approx(0).margin(1e-3));
  CHECK(time_of(step, 2).begin == Approx(1).epsilon(1e-3));
  CHECK(time_of(step, 2).end == Approx(2).epsilon(1e-3));
  CHECK(step.stall_s[0] == Approx(0).margin(1e-3));
}

TEST_CASE("messages: one after the other passes a direction of a link") {
  HandRanks ranks(3);
  ranks.talk({{1, 0, 1}, {2, 0, 1}, {0, 1, 0.5}});
  CHECK(ranks.run().time_s == Approx(2).epsilon(1e-3));
  // On another stream, behind what is booked.
  ranks.compute(0.5, 1);
  ranks.talk({{1, 0, 0.5}}, 1);
  CHECK(ranks.run().time_s == Approx(2.5).epsilon(1e-3));
  ranks.talk({{0, 2, 0.5}}, 1);
  CHECK(time_of(ranks.run(), 3).end == Approx(3).epsilon(1e-3));
}

TEST_CASE("messages: a collective takes its own seconds and copies in memory\\, too") {
  HandRanks ranks(2);
  ranks.talk({{0, 1, 1}}, 0, 0.5);
  CHECK(ranks.run().time_s == Approx(1.5).epsilon(1e-3));
  ranks.collectives[0].copies_s = 3;
  CHECK(ranks.run().time_s == Approx(3.5).epsilon(1e-3));
  ranks.links = RankLinks(2, LinkRate{});
  CHECK(ranks.run().time_s == 3.5);
}

TEST_CASE("messages: groups that have nothing for each other do not wait for each other") {
  HandRanks ranks(4);
  ranks.talk({{2, 3, 5}});
  ranks.compute(1);
  CHECK(time_of(ranks.run(), 1).end == Approx(1).epsilon(1e-3));
  ranks.talk({{0, 1, 1}});
  CHECK(time_of(ranks.run(), 2).end == Approx(6).epsilon(1e-3));  // when ranks 2 and 3 have come
  for (Collective& each : ranks.collectives) each.group = {0, 0, 1, 1};
  CHECK(time_of(ranks.run(), 2).end == Approx(2).epsilon(1e-3));
  CHECK(ranks.run().time_s == Approx(6).epsilon(1e-3));
}

TEST_CASE("messages: each rank has links to its own devices") {
  HandRanks ranks(3);
  ranks.schedule.places = places_of_rank(2);
  ranks.schedule.buffers.resize(2);
  ranks.schedule.buffers[1].place = 1;
  Task copy;
  copy.kind = TaskKind::copy;
  copy.uses = {BufferUse{0, {}}, BufferUse{1, {}}};
  ranks.schedule.tasks.push_back(copy);
  ranks.demands.push_back({0.5, 1000});
  const std::vector<LinkRates> devices = {{}, {{1000, 0}, {10, 0}}};
  const auto run = [&] {
    return simulate_messages(ranks.schedule, devices, ranks.demands, {}, ranks.links);
  };
  CHECK(run().time_s == Approx(1.5));
  CHECK(run().trace.front().bytes == 1000);
  std::swap(ranks.schedule.tasks[0].uses[0], ranks.schedule.tasks[0].uses[1]);
  CHECK(run().time_s == Approx(100.5));
}

TEST_CASE("messages: one collective takes what the busiest link does") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    HandRanks ranks = any_ranks(seed, 1);
    if (ranks.collectives.empty()) continue;
    const Collective only = ranks.collectives.front();
    const std::vector<std::string> names = {"a", "a", "b", "b", "b", "c", "d", "d"};
    const std::vector<std::string> hosts(names.begin(), names.begin() + ranks.ranks);
    HandRanks one(ranks.ranks);
    for (int32_t way = 0; way < 2; ++way) {
      if (way == 1) {
        one.links = RankLinks(hosts, [&](int32_t from, int32_t to) {
          const double rate = kLink * (1 + (from + 3 * to) % 5);
          return PairRate{rate, 0, rate / (1 + to % 3)};
        });
      }
      one.schedule = {};
      one.demands.clear();
      one.add(TaskKind::gather, 0.25, 0);
      one.collectives = {only};
      const double busy = one.links.busy_s(only.traffic);
      CHECK(one.run().time_s <= 0.25 + busy * (1 + 1e-9));
      CHECK(one.run().time_s >= 0.25 + busy - 2e-3);  // records
    }
  }
}

TEST_CASE("messages: a step is no shorter than its links\\, and no longer than if all wait") {
  int shorter = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const HandRanks ranks = any_ranks(seed, 1);
    const SimulatedStep step = ranks.run();
    // Each direction of each link passes its bytes. A rank computes, and in each collective passes what
    // it sends and what it gets at the same time, before it goes on.
    std::vector<double> least(static_cast<size_t>(ranks.ranks));
    std::vector<double> out = least, in = least;
    double computes = 0;
    for (const TaskDemand& demand : ranks.demands) computes += demand.seconds;
    for (const Collective& each : ranks.collectives) {
      for (int32_t rank = 0; rank < ranks.ranks; ++rank) {
        double sends = 0, gets = 0;
        for (int32_t other = 0; other < ranks.ranks; ++other) {
          sends += each.traffic.bytes(rank, other) / kLink;
          gets += each.traffic.bytes(other, rank) / kLink;
        }
        const auto at = static_cast<size_t>(rank);
        out[at] += sends;
        in[at] += gets;
        least[at] += std::max(sends, gets);
      }
    }
    for (size_t rank = 0; rank < least.size(); ++rank) {
      CHECK(step.time_s >= std::max(out[rank], in[rank]) * (1 - 1e-9));
      CHECK(step.time_s >= (computes + least[rank]) * (1 - 1e-9));
    }
    const double together = ranks.run_together().time_s;
    CHECK(step.time_s <= together * (1 + 1e-9));
    shorter += step.time_s < 0.98 * together ? 1 : 0;
    // Both wait for both messages, if not for records alone.
    if (ranks.ranks == 2) CHECK(step.time_s >= together - 2e-3);  // each waits for both messages
  }
  CHECK(shorter > 40);
}

TEST_CASE("messages: a repeat has the same times to the bit") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const HandRanks ranks = any_ranks(seed, 3);
    const SimulatedStep one = ranks.run(), again = ranks.run();
    REQUIRE(one.trace.size() == ranks.schedule.tasks.size());
    CHECK(one.time_s == again.time_s);
    for (size_t i = 0; i < one.trace.size(); ++i) {
      CHECK(one.trace[i].task == again.trace[i].task);
      CHECK(one.trace[i].begin == again.trace[i].begin);
      CHECK(one.trace[i].end == again.trace[i].end);
    }
  }
}

TEST_CASE("messages: a collective without its messages is a bug") {
  HandRanks ranks(2);
  ranks.talk({{0, 1, 1}});
  ranks.collectives.clear();
  CHECK_THROWS_AS(ranks.run(), std::logic_error);
  ranks.demands.clear();
  CHECK_THROWS_AS(ranks.run(), std::logic_error);
}

}  // namespace
}  // namespace hearth::test
