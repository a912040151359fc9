#include "plan/rank_simulation.h"

#include <algorithm>
#include <map>

#include "plan/event_simulation.h"
#include "plan/kind_costs.h"

namespace hearth {

namespace {

/// All tasks of all ranks, with numbers of their own.
class JoinedRanks {
 public:
  explicit JoinedRanks(std::span<const RankSchedule> ranks) : ranks_(ranks) {
    for (const RankSchedule& rank : ranks) add(rank);
    join_collectives();
  }

  std::vector<SimulatedStep> run() {
    const EventSimulation events(streams_, after_);
    const std::vector<int32_t> circle = events.deadlock();
    HEARTH_CHECK(circle.empty(),
                 "ranks wait for each other, first in " + describe(task(circle.front())));
    const double one_second_per_second = 1;
    const EventTimes times = events.run(loads_, {&one_second_per_second, 1});
    std::vector<SimulatedStep> steps;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) steps.push_back(step_of(rank, times));
    return steps;
  }

 private:
  void add(const RankSchedule& rank) {
    const Schedule& s = *rank.schedule;
    HEARTH_CHECK(rank.demands.size() == s.tasks.size(), "ranks: a demand for each task");
    const auto first = static_cast<int32_t>(loads_.size());
    const size_t stream = streams_.size();
    first_.push_back(first);
    streams_.resize(stream + s.streams.size());
    std::vector<std::vector<TaskId>> after = dependencies(s);
    for (size_t t = 0; t < s.tasks.size(); ++t) {
      streams_[stream + static_cast<size_t>(s.tasks[t].stream)].push_back(first +
                                                                          static_cast<int32_t>(t));
      for (TaskId& before : after[t]) before += first;
      after_.push_back(std::move(after[t]));
      const TaskDemand& demand = rank.demands[t];
      const bool talks = kind_costs(s.tasks[t].kind).talks;
      TaskLoad load{demand.seconds, talks ? demand.between_s : 0};
      if (talks) load.through[0] = 0;
      loads_.push_back(load);
    }
  }

  const Task& task(int32_t number) const {
    size_t rank = first_.size() - 1;
    while (first_[rank] > number) --rank;
    return ranks_[rank].schedule->tasks[static_cast<size_t>(number - first_[rank])];
  }

  /// By stream of a rank: its collectives, and the tasks before them.
  std::vector<std::vector<std::pair<int32_t, int32_t>>> collectives(size_t rank) const {
    const Schedule& s = *ranks_[rank].schedule;
    std::vector<std::vector<std::pair<int32_t, int32_t>>> found(s.streams.size());
    std::vector<int32_t> last(s.streams.size(), -1);
    for (size_t t = 0; t < s.tasks.size(); ++t) {
      const auto stream = static_cast<size_t>(s.tasks[t].stream);
      const int32_t number = first_[rank] + static_cast<int32_t>(t);
      if (kind_costs(s.tasks[t].kind).talks) found[stream].emplace_back(number, last[stream]);
      last[stream] = number;
    }
    return found;
  }

  /// The first rank's task waits for what those of the others wait for, and these end with it.
  void join_collectives() {
    const auto leads = collectives(0);
    for (size_t rank = 1; rank < ranks_.size(); ++rank) {
      const auto follows = collectives(rank);
      HEARTH_CHECK(follows.size() == leads.size(), "ranks: other streams");
      for (size_t stream = 0; stream < leads.size(); ++stream) {
        HEARTH_CHECK(follows[stream].size() == leads[stream].size(), "ranks: other collectives");
        for (size_t i = 0; i < leads[stream].size(); ++i) {
          join(leads[stream][i].first, follows[stream][i]);
        }
      }
    }
  }

  void join(int32_t leader, const std::pair<int32_t, int32_t>& follower) {
    const auto& [number, previous] = follower;
    const Task &one = task(leader), &other = task(number);
    HEARTH_CHECK(one.kind == other.kind && one.phase == other.phase && one.layer == other.layer,
                 "ranks: " + describe(one) + " meets " + describe(other));
    std::vector<int32_t>& waits = after_[static_cast<size_t>(leader)];
    std::vector<int32_t>& of_other = after_[static_cast<size_t>(number)];
    waits.insert(waits.end(), of_other.begin(), of_other.end());
    if (previous >= 0) waits.push_back(previous);
    of_other = {leader};
    loads_[static_cast<size_t>(number)] = {};
  }

  SimulatedStep step_of(size_t rank, const EventTimes& times) const {
    const Schedule& s = *ranks_[rank].schedule;
    SimulatedStep step;
    step.time_s = times.last;
    std::vector<double> busy(s.streams.size()), last(s.streams.size());
    const int32_t first = first_[rank], end = first + static_cast<int32_t>(s.tasks.size());
    for (const int32_t number : times.order) {
      if (number < first || number >= end) continue;
      const auto at = static_cast<size_t>(number);
      const auto stream = static_cast<size_t>(task(number).stream);
      step.trace.push_back({number - first, times.begin[at], times.end[at], 0});
      busy[stream] += times.end[at] - times.begin[at];
      last[stream] = std::max(last[stream], times.end[at]);
    }
    for (size_t i = 0; i < busy.size(); ++i) step.stall_s.push_back(last[i] - busy[i]);
    return step;
  }

  std::span<const RankSchedule> ranks_;
  std::vector<int32_t> first_;  // by rank: the number of its first task
  std::vector<std::vector<int32_t>> streams_, after_;
  std::vector<TaskLoad> loads_;
};

}  // namespace

std::vector<SimulatedStep> simulate_ranks(std::span<const RankSchedule> ranks) {
  return JoinedRanks(ranks).run();
}

}  // namespace hearth
