#include "plan/event_simulation.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "base/error.h"
#include "plan/fair_shares.h"

namespace hearth {

namespace {

constexpr double kNoEvent = std::numeric_limits<double>::infinity();
// Flows that end so close to each other end together: their times differ by rounding alone.
constexpr double kTogether = 1e-12;

/// Of a task that waits, by whatever it waits for.
size_t number_of(int32_t next) { return static_cast<size_t>(next < 0 ? ~next : next); }

}  // namespace

EventSimulation::EventSimulation(std::vector<std::vector<int32_t>> streams,
                                 std::vector<std::vector<int32_t>> after)
    : streams_(std::move(streams)),
      after_(std::move(after)),
      previous_(after_.size(), -1),
      waits_(after_.size(), 0),
      next_begin_(after_.size() + 1, 0) {
  const size_t n = after_.size();
  std::vector<bool> issued(n);
  for (const std::vector<int32_t>& stream : streams_) {
    for (size_t i = 0; i < stream.size(); ++i) {
      const auto task = static_cast<size_t>(stream[i]);
      HEARTH_CHECK(task < n && !issued[task], "simulation: a task is not in one stream, once");
      issued[task] = true;
      if (i > 0) previous_[task] = stream[i - 1];
    }
  }
  HEARTH_CHECK(std::ranges::find(issued, false) == issued.end(),
               "simulation: a task is in no stream");
  const auto for_each_wait = [&](auto&& f) {
    for (size_t t = 0; t < n; ++t) {
      const auto task = static_cast<int32_t>(t);
      if (previous_[t] >= 0) f(static_cast<size_t>(previous_[t]), ~task);
      for (const int32_t before : after_[t]) f(static_cast<size_t>(before), task);
    }
  };
  for_each_wait([&](size_t before, int32_t) {
    HEARTH_CHECK(before < n, "simulation: a task follows one that is not there");
    ++next_begin_[before + 1];
  });
  for (size_t t = 0; t < n; ++t) next_begin_[t + 1] += next_begin_[t];
  next_.resize(static_cast<size_t>(next_begin_[n]));
  std::vector<int32_t> end(next_begin_.begin(), next_begin_.end() - 1);
  for_each_wait([&](size_t before, int32_t next) {
    next_[static_cast<size_t>(end[before]++)] = next;
    ++waits_[number_of(next)];
  });
}

/// One simulation: the time, the tasks in flight, and what they share.
class EventSimulation::Run final : public SimulationGuest::Stage {
 public:
  Run(const EventSimulation& simulation, std::span<const TaskLoad> loads,
      std::span<const double> rates, SimulationGuest* guest, std::span<const uint8_t> idle)
      : simulation_(simulation),
        guest_(guest),
        loads_(loads),
        idle_(idle),
        rates_(rates),
        shares_(rates),
        waits_(simulation.waits_),
        is_due_(loads.size()),
        has_ended_(loads.size()) {
    times_.begin.resize(loads.size());
    times_.end.resize(loads.size());
    times_.order.reserve(loads.size());
  }

  EventTimes times() {
    if (guest_ != nullptr) guest_->begin(*this);
    for (size_t t = 0; t < waits_.size(); ++t) {
      is_due_[t] = simulation_.previous_[t] < 0;
      if (is_idle(t) ? waits_[t] == (is_due_[t] ? 0 : 1) : waits_[t] == 0) {
        admit(static_cast<int32_t>(t));
      }
    }
    settle();
    for (;;) {
      const double alone = alone_.empty() ? kNoEvent : alone_.top().first;
      const double next = std::min(alone, next_finish_);
      if (next == kNoEvent) break;
      now_ = next;
      while (!alone_.empty() && alone_.top().first <= now_) {
        const int32_t task = alone_.top().second;
        alone_.pop();
        pass_through(task);
      }
      if (next_finish_ <= now_) end_flows();
      settle();
    }
    HEARTH_CHECK(ended_ == loads_.size(), "simulation: tasks wait for each other");
    return std::move(times_);
  }

  double now() const override { return now_; }
  void release(int32_t task) override { begin(task); }
  void pass(int32_t ticket, const TaskLoad& load) override {
    const auto id = static_cast<int32_t>(loads_.size()) + ticket;
    const auto at = static_cast<size_t>(ticket);
    if (at >= guest_loads_.size()) guest_loads_.resize(at + 1);
    guest_loads_[at] = load;
    start(id, load);
  }

 private:
  using Ending = std::pair<double, int32_t>;  // time, task

  bool is_idle(size_t task) const { return !idle_.empty() && idle_[task] != 0; }

  /// All that the task follows has ended, and unless it is idle, its stream has come to it.
  void admit(int32_t task) {
    if (is_idle(static_cast<size_t>(task))) {
      ready_.push_back(task);
      return;
    }
    if (guest_ == nullptr || guest_->may_begin(task, *this)) begin(task);
  }

  void begin(int32_t task) {
    times_.begin[static_cast<size_t>(task)] = now_;
    times_.order.push_back(task);
    start(task, loads_[static_cast<size_t>(task)]);
  }

  /// Of a task, or behind their number of a guest's.
  const TaskLoad& load_of(int32_t id) const {
    const auto at = static_cast<size_t>(id);
    return at < loads_.size() ? loads_[at] : guest_loads_[at - loads_.size()];
  }

  void start(int32_t task, const TaskLoad& load) {
    if (load.seconds > 0) {
      alone_.emplace(now_ + load.seconds, task);
    } else {
      pass_through(task);
    }
  }

  /// The task's seconds alone are over.
  void pass_through(int32_t task) {
    const TaskLoad& load = load_of(task);
    const bool limited = load.amount > 0 && std::ranges::any_of(load.through, [&](int32_t r) {
                           return r >= 0 && rates_[static_cast<size_t>(r)] > 0;
                         });
    if (!limited) {
      ready_.push_back(task);
      return;
    }
    flows_.push_back({task, load.through, load.amount, 0, kNoEvent});
    changed_ = true;
  }

  /// Ends flows whose time has come.
  void end_flows() {
    const double latest = now_ + kTogether * now_;
    std::erase_if(flows_, [&](const Flow& flow) {
      if (flow.finish > latest) return false;
      ready_.push_back(flow.task);
      return true;
    });
    changed_ = true;
  }

  /// Ends the tasks that are done now, begins those that waited for them, and shares resources anew.
  void settle() {
    while (!ready_.empty()) {
      const auto task = static_cast<size_t>(ready_.back());
      ready_.pop_back();
      if (task >= loads_.size()) {
        guest_->passed(static_cast<int32_t>(task - loads_.size()), *this);
        continue;
      }
      if (is_idle(task)) {
        has_ended_[task] = true;
        for_next(task, [&](int32_t next) {
          if (next >= 0) follow(next);
        });
        if (is_due_[task]) pass_idle(task);
        continue;
      }
      times_.end[task] = now_;
      times_.last = now_;
      ++ended_;
      if (guest_ != nullptr) guest_->ended(static_cast<int32_t>(task), *this);
      for_next(task, [&](int32_t next) { follow(next); });
    }
    if (changed_) divide();
  }

  template <class F>
  void for_next(size_t task, const F& f) const {
    const auto first = static_cast<size_t>(simulation_.next_begin_[task]);
    const auto past = static_cast<size_t>(simulation_.next_begin_[task + 1]);
    for (size_t i = first; i < past; ++i) f(simulation_.next_[i]);
  }

  /// Something that the task waits for has ended.
  void follow(int32_t next) {
    const size_t task = number_of(next);
    --waits_[task];
    if (next < 0) is_due_[task] = true;
    if (!is_idle(task)) {
      if (waits_[task] == 0) admit(static_cast<int32_t>(task));
    } else if (next >= 0 && waits_[task] == (is_due_[task] ? 0 : 1)) {
      admit(static_cast<int32_t>(task));
    } else if (next < 0 && has_ended_[task]) {
      pass_idle(task);
    }
  }

  /// The stream of an idle task goes on behind it.
  void pass_idle(size_t task) {
    times_.begin[task] = times_.end[task] = now_;
    times_.order.push_back(static_cast<int32_t>(task));
    ++ended_;
    for_next(task, [&](int32_t next) {
      if (next < 0) follow(next);
    });
  }

  /// Flows came or went: what was left passes at new rates from now on.
  void divide() {
    changed_ = false;
    old_.clear();
    for (const Flow& flow : flows_) old_.push_back(flow.rate);
    shares_.divide(flows_);
    next_finish_ = kNoEvent;
    for (size_t i = 0; i < flows_.size(); ++i) {
      Flow& flow = flows_[i];
      // A flow that keeps its rate keeps its end, to the last bit.
      if (flow.rate != old_[i]) {
        if (old_[i] > 0) flow.left = std::max(0.0, (flow.finish - now_) * old_[i]);
        flow.finish = now_ + flow.left / flow.rate;
      }
      next_finish_ = std::min(next_finish_, flow.finish);
    }
  }

  const EventSimulation& simulation_;
  SimulationGuest* const guest_;
  const std::span<const TaskLoad> loads_;
  const std::span<const uint8_t> idle_;
  std::vector<TaskLoad> guest_loads_;  // by ticket
  const std::span<const double> rates_;
  FairShares shares_;
  std::vector<int32_t> waits_;   // of each task: how many tasks it still waits for
  std::vector<bool> is_due_;     // whether its stream has come to it
  std::vector<bool> has_ended_;  // of idle tasks: whether followers may begin
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> alone_;
  std::vector<Flow> flows_;
  std::vector<double> old_;     // rates
  std::vector<int32_t> ready_;  // tasks that end now
  EventTimes times_;
  size_t ended_ = 0;
  double now_ = 0;
  double next_finish_ = kNoEvent;
  bool changed_ = false;  // flows came or went since their rates were set
};

EventTimes EventSimulation::run(std::span<const TaskLoad> loads, std::span<const double> rates,
                                SimulationGuest* guest, std::span<const uint8_t> idle) const {
  HEARTH_CHECK(loads.size() == after_.size(), "simulation: a load for each task");
  HEARTH_CHECK(idle.empty() || idle.size() == after_.size(), "simulation: which tasks are idle");
  return Run(*this, loads, rates, guest, idle).times();
}

std::vector<int32_t> EventSimulation::deadlock() const {
  std::vector<int32_t> waits = waits_, ready;
  for (size_t t = 0; t < waits.size(); ++t) {
    if (waits[t] == 0) ready.push_back(static_cast<int32_t>(t));
  }
  while (!ready.empty()) {
    const auto task = static_cast<size_t>(ready.back());
    ready.pop_back();
    for (auto i = next_begin_[task]; i < next_begin_[task + 1]; ++i) {
      const size_t next = number_of(next_[static_cast<size_t>(i)]);
      if (--waits[next] == 0) ready.push_back(static_cast<int32_t>(next));
    }
  }
  const auto stuck = [&](int32_t task) { return waits[static_cast<size_t>(task)] > 0; };
  const auto first = std::ranges::find_if(waits, [](int32_t n) { return n > 0; });
  if (first == waits.end()) return {};
  // Whatever is stuck waits for something that is stuck. Going from one to the next ends in a circle.
  std::vector<int32_t> path = {static_cast<int32_t>(first - waits.begin())};
  std::vector<int32_t> place(waits.size(), -1);  // in the path
  for (;;) {
    const auto task = static_cast<size_t>(path.back());
    if (place[task] >= 0) break;
    place[task] = static_cast<int32_t>(path.size()) - 1;
    const auto before = std::ranges::find_if(after_[task], stuck);
    path.push_back(before != after_[task].end() ? *before : previous_[task]);
  }
  return {path.begin() + place[static_cast<size_t>(path.back())], path.end() - 1};
}

}  // namespace hearth
