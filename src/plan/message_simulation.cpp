#include "plan/message_simulation.h"

#include <algorithm>

#include "base/error.h"
#include "plan/kind_costs.h"

namespace hearth {

namespace {

/// A step of all ranks as one simulation. A rank has its tasks, and behind them its coming to each
/// collective, which the tasks of the collective follow at all ranks of a group.
class RankedStep final : public SimulationGuest {
 public:
  RankedStep(const Schedule& schedule, std::span<const TaskDemand> demands,
             std::span<const Collective> collectives, const RankLinks& between)
      : schedule_(schedule),
        demands_(demands),
        collectives_(collectives),
        ranks_(static_cast<size_t>(between.ranks())),
        links_(between),
        talk_of_(schedule.tasks.size(), -1) {
    for (size_t t = 0; t < schedule.tasks.size(); ++t) {
      if (!kind_costs(schedule.tasks[t].kind).talks) continue;
      talk_of_[t] = static_cast<int32_t>(talking_.size());
      talking_.push_back(static_cast<TaskId>(t));
    }
    HEARTH_CHECK(demands.size() == schedule.tasks.size(), "messages: a demand for each task");
    HEARTH_CHECK(collectives.size() == talking_.size(), "messages: what each collective sends");
    has_come_.resize(ranks_ * talking_.size());
    passed_at_.resize(has_come_.size());
  }

  SimulatedStep run(const CopyLinks& copies) {
    loads_ = loads(copies);
    std::vector<double> rates;  // each rank's devices have links of their own
    for (size_t rank = 0; rank < ranks_; ++rank) {
      rates.insert(rates.end(), copies.rates().begin(), copies.rates().end());
    }
    return step_of_first(events().run(loads_, rates, this));
  }

  /// A collective: all ranks of its group have come to it, so its last message is booked.
  bool may_begin(int32_t task, Stage& stage) override {
    const size_t rank = static_cast<size_t>(task) / of_rank(),
                 at = static_cast<size_t>(task) % of_rank();
    if (at < tasks() && talk_of_[at] >= 0) {
      const double passed = passed_at_[static_cast<size_t>(talk_of_[at]) * ranks_ + rank];
      loads_[static_cast<size_t>(task)].seconds += std::max(0.0, passed - stage.now());
    }
    return true;
  }

  void ended(int32_t task, Stage& stage) override {
    const size_t rank = static_cast<size_t>(task) / of_rank(),
                 at = static_cast<size_t>(task) % of_rank();
    if (at >= tasks()) come(at - tasks(), rank, stage.now());
  }

  void passed(int32_t, Stage&) override {}

 private:
  size_t tasks() const { return talk_of_.size(); }
  size_t of_rank() const { return talk_of_.size() + talking_.size(); }
  int32_t number(size_t rank, size_t at) const {
    return static_cast<int32_t>(rank * of_rank() + at);
  }
  int32_t coming(size_t rank, int32_t talk) const {
    return number(rank, tasks() + static_cast<size_t>(talk));
  }

  EventSimulation events() const {
    std::vector<std::vector<int32_t>> streams(ranks_ * schedule_.streams.size());
    std::vector<std::vector<int32_t>> after(ranks_ * of_rank());
    const std::vector<std::vector<TaskId>> waits = dependencies(schedule_);
    for (size_t rank = 0; rank < ranks_; ++rank) {
      for (size_t at = 0; at < tasks(); ++at) {
        const int32_t talk = talk_of_[at];
        const int32_t first = talk < 0 ? number(rank, at) : coming(rank, talk);
        for (const TaskId before : waits[at]) {
          after[static_cast<size_t>(first)].push_back(number(rank, static_cast<size_t>(before)));
        }
        const auto stream = static_cast<size_t>(schedule_.tasks[at].stream);
        streams[rank * schedule_.streams.size() + stream].push_back(first);
        if (talk < 0) continue;
        const std::vector<int32_t>& group = collectives_[static_cast<size_t>(talk)].group;
        for (size_t other = 0; other < ranks_; ++other) {
          if (group[other] != group[rank]) continue;
          after[static_cast<size_t>(number(rank, at))].push_back(coming(other, talk));
        }
        streams[rank * schedule_.streams.size() + stream].push_back(number(rank, at));
      }
    }
    return {std::move(streams), std::move(after)};
  }

  std::vector<TaskLoad> loads(const CopyLinks& copies) const {
    std::vector<TaskLoad> loads(ranks_ * of_rank());
    for (size_t at = 0; at < tasks(); ++at) {
      const Task& of = schedule_.tasks[at];
      TaskLoad load;
      if (of.kind == TaskKind::copy) load = copies.of_route(copy_route(schedule_, of));
      load.seconds = demands_[at].seconds;
      load.amount = demands_[at].bytes;
      for (size_t rank = 0; rank < ranks_; ++rank) {
        loads[static_cast<size_t>(number(rank, at))] = load;
        for (int32_t& resource : load.through) {  // those of the next rank
          if (resource >= 0) resource += static_cast<int32_t>(copies.rates().size());
        }
      }
    }
    return loads;
  }

  /// Books the messages between this rank and those that have come to the collective before it.
  void come(size_t talk, size_t rank, double now) {
    const Collective& collective = collectives_[talk];
    const size_t first = talk * ranks_;
    has_come_[first + rank] = true;
    const auto book = [&](size_t from, size_t to) {
      const auto sender = static_cast<int32_t>(from), receiver = static_cast<int32_t>(to);
      const double bytes = collective.traffic.bytes(sender, receiver);
      if (bytes <= 0) return;  // a record alone, which waits behind no message of the collective
      const double passed = std::max(links_.book(sender, receiver, bytes + kRecordBytes, now),
                                     now + collective.copies_s);
      for (const size_t each : {from, to}) {
        passed_at_[first + each] = std::max(passed_at_[first + each], passed);
      }
    };
    for (size_t i = 1; i < ranks_; ++i) {
      const size_t other = (rank + i) % ranks_;
      if (!has_come_[first + other] || collective.group[other] != collective.group[rank]) continue;
      book(rank, other);
      book(other, rank);
    }
  }

  SimulatedStep step_of_first(const EventTimes& times) const {
    SimulatedStep step;
    step.time_s = times.last;
    std::vector<double> busy(schedule_.streams.size()), last(schedule_.streams.size());
    for (const int32_t number : times.order) {
      auto at = static_cast<size_t>(number);
      if (at >= of_rank()) continue;
      if (at >= tasks()) {
        at = static_cast<size_t>(talking_[at - tasks()]);
      } else if (talk_of_[at] >= 0) {
        continue;  // has begun with the rank's coming
      }
      const double begin = times.begin[static_cast<size_t>(number)], end = times.end[at];
      step.trace.push_back(
          {static_cast<TaskId>(at), begin, end, static_cast<uint64_t>(demands_[at].bytes)});
      const auto stream = static_cast<size_t>(schedule_.tasks[at].stream);
      busy[stream] += end - begin;
      last[stream] = std::max(last[stream], end);
    }
    for (size_t i = 0; i < busy.size(); ++i) step.stall_s.push_back(last[i] - busy[i]);
    return step;
  }

  const Schedule& schedule_;
  const std::span<const TaskDemand> demands_;
  const std::span<const Collective> collectives_;
  const size_t ranks_;
  BookedLinks links_;
  std::vector<int32_t> talk_of_;  // by task: of its collective, or -1
  std::vector<TaskId> talking_;   // by number of a collective
  std::vector<TaskLoad> loads_;
  // By collective and rank.
  std::vector<bool> has_come_;
  std::vector<double> passed_at_;  // when all messages that are booked have passed
};

}  // namespace

SimulatedStep simulate_messages(const Schedule& schedule, std::span<const LinkRates> links,
                                std::span<const TaskDemand> demands,
                                std::span<const Collective> collectives, const RankLinks& between) {
  return RankedStep(schedule, demands, collectives, between).run(CopyLinks(schedule, links));
}

}  // namespace hearth
