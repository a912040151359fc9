#include "plan/zebra/order_search.h"

#include <algorithm>
#include <array>
#include <limits>

namespace hearth {

namespace {

/// What a micro-batch passes through, in order.
std::vector<ZebraTask> chain_of(int32_t layers) {
  std::vector<ZebraTask> chain;
  for (int32_t at = 0; at <= layers; ++at) {
    chain.push_back({false, Phase::forward, at, 0});
    if (at < layers) chain.push_back({true, Phase::forward, at, 0});
  }
  for (int32_t at = layers; at >= 0; --at) {
    chain.push_back({false, Phase::backward, at, 0});
    if (at > 0) chain.push_back({true, Phase::backward, at - 1, 0});
  }
  return chain;
}

/// By position in the chain: seconds from the begin of the task to the end of the micro-batch.
std::vector<double> tails_of(const ZebraTimes& times, const ExpertShift& shift,
                             const std::vector<ZebraTask>& chain) {
  std::vector<double> tails(chain.size());
  double tail = 0;
  for (size_t i = chain.size(); i-- > 0;) {
    const ZebraTask& task = chain[i];
    const bool forward = task.phase == Phase::forward;
    const auto seconds = [&](const ZebraTime& time) {
      return forward ? time.forward : time.backward;
    };
    const int32_t of = task.experts || forward ? task.at : task.at - 1;
    if (of >= 0 && of < times.count()) {
      const ZebraLayerTimes& layer = times.layers[static_cast<size_t>(of)];
      tail += seconds(task.experts ? layer.back : layer.out);
    }
    if (task.experts) {
      const int32_t moved = moved_of(shift, task.at);
      tail += std::max(seconds(experts_there(times, task.at, moved)),
                       seconds(experts_here(times, task.at, moved)));
    } else {
      tail += seconds(times.stages[static_cast<size_t>(task.at)]);
    }
    tails[i] = tail;
  }
  return tails;
}

/// An order that is made task by task: what is done, and when the ranks of a role and the links are free.
class PartialOrder {
 public:
  struct Problem {
    const ZebraTimes& times;
    const ExpertShift& shift;
    std::vector<ZebraTask> chain;
    std::vector<double> tail;  // by position in the chain: seconds to its end
  };

  PartialOrder(const Problem& problem, int32_t micro_batches)
      : problem_(&problem),
        next_(static_cast<size_t>(micro_batches)),
        ready_(static_cast<size_t>(micro_batches)) {
    for (const ZebraTask& task : problem.chain) {
      for (size_t role = 0; role < left_.size(); ++role) {
        left_[role] += micro_batches * seconds_at(task, role);
      }
    }
  }

  bool is_done() const { return next_.back() == problem_->chain.size(); }
  double bound() const { return bound_; }
  const ZebraOrder& order() const { return order_; }

  /// The orders that go on: of the role that can end a task first, each task that could begin before that
  /// end (Giffler and Thompson).
  std::vector<PartialOrder> go_on() const {
    size_t role = 0;
    double end = std::numeric_limits<double>::infinity();
    for (size_t m = 0; m < next_.size(); ++m) {
      if (!may_go(m)) continue;
      const ZebraTask& task = problem_->chain[next_[m]];
      const size_t of = role_of(task);
      const double ends = begin_of(m) + seconds_at(task, of);
      if (ends < end) role = of;
      end = std::min(end, ends);
    }
    std::vector<PartialOrder> more;
    for (size_t m = 0; m < next_.size(); ++m) {
      if (!may_go(m)) continue;
      const ZebraTask& task = problem_->chain[next_[m]];
      const bool is_first = begin_of(m) + seconds_at(task, role) <= end;
      if (role_of(task) != role || (begin_of(m) >= end && !is_first)) continue;
      more.push_back(*this);
      more.back().compute(m);
    }
    return more;
  }

 private:
  bool is_here(const ZebraTask& task) const {
    return task.experts && moved_of(problem_->shift, task.at) > 0;
  }
  /// Where tasks compete: experts that attention ranks compute, too, count as theirs.
  size_t role_of(const ZebraTask& task) const { return task.experts && !is_here(task) ? 1 : 0; }
  double seconds_at(const ZebraTask& task, size_t role) const {
    const ZebraTimes& times = problem_->times;
    const auto seconds = [&](const ZebraTime& time) {
      return task.phase == Phase::forward ? time.forward : time.backward;
    };
    const int32_t moved = task.experts ? moved_of(problem_->shift, task.at) : 0;
    if (!task.experts) return role == 0 ? seconds(times.stages[static_cast<size_t>(task.at)]) : 0;
    return seconds(role == 0 ? experts_here(times, task.at, moved)
                             : experts_there(times, task.at, moved));
  }

  /// Behind the same of the micro-batch before; experts of attention ranks behind all attention.
  bool may_go(size_t m) const {
    if (next_[m] == problem_->chain.size() || (m > 0 && next_[m - 1] <= next_[m])) return false;
    return !is_here(problem_->chain[next_[m]]) || next_.back() >= next_[m];
  }
  double begin_of(size_t m) const {
    return std::max(ready_[m], free_[role_of(problem_->chain[next_[m]])]);
  }

  void compute(size_t m) {
    ZebraTask task = problem_->chain[next_[m]];
    task.micro_batch = static_cast<int32_t>(m);
    order_.push_back(task);
    const bool forward = task.phase == Phase::forward;
    double end = ready_[m];
    for (size_t role = 0; role < free_.size(); ++role) {
      const double seconds = seconds_at(task, role);
      left_[role] -= seconds;
      if (task.experts ? role == 0 && !is_here(task) : role == 1) continue;
      end = std::max(end, free_[role] = std::max(free_[role], ready_[m]) + seconds);
    }
    const int32_t of = task.experts || forward ? task.at : task.at - 1;  // whose rows travel
    ready_[m] = end;
    if (of >= 0 && of < problem_->times.count()) {
      const ZebraLayerTimes& layer = problem_->times.layers[static_cast<size_t>(of)];
      const ZebraTime& time = task.experts ? layer.back : layer.out;
      double& free = links_[task.experts ? 1 : 0];
      ready_[m] = free = std::max(free, end) + (forward ? time.forward : time.backward);
    }
    ++next_[m];
    set_bound();
  }

  /// No order that goes on is faster.
  void set_bound() {
    bound_ = 0;
    for (size_t role = 0; role < free_.size(); ++role) {
      bound_ = std::max(bound_, free_[role] + left_[role]);
    }
    for (size_t m = 0; m < next_.size(); ++m) {
      const bool done = next_[m] == problem_->chain.size();
      bound_ = std::max(bound_, done ? ready_[m] : begin_of(m) + problem_->tail[next_[m]]);
    }
  }

  const Problem* problem_;
  std::vector<size_t> next_;  // by micro-batch: position in the chain
  std::vector<double> ready_;
  std::array<double, 2> free_{}, left_{}, links_{};  // by role: free from, seconds left; by way
  double bound_ = 0;
  ZebraOrder order_;
};

/// Keeps the orders of least bound at each task: a beam search.
ZebraOrder beam_search(const ZebraTimes& times, int32_t micro_batches, const ExpertShift& shift,
                       size_t width) {
  PartialOrder::Problem problem{times, shift, chain_of(times.count()), {}};
  problem.tail = tails_of(times, shift, problem.chain);
  std::vector<PartialOrder> kept = {PartialOrder(problem, micro_batches)};
  while (!kept.front().is_done()) {
    std::vector<PartialOrder> more;
    for (const PartialOrder& one : kept) {
      for (PartialOrder& next : one.go_on()) more.push_back(std::move(next));
    }
    std::ranges::stable_sort(more, {}, &PartialOrder::bound);
    if (more.size() > width) more.erase(more.begin() + static_cast<int64_t>(width), more.end());
    kept = std::move(more);
  }
  return kept.front().order();
}

}  // namespace

FoundOrder find_zebra_order(const ZebraTimes& times, int32_t micro_batches,
                            const ExpertShift& shift, int32_t width) {
  FoundOrder found;
  found.order = theorem_1_order(times.count(), micro_batches);
  found.time_s = found.theorem_1_s = simulate_zebra(times, found.order, shift).time_s;
  if (found.time_s <= zebra_bound(times, micro_batches, shift) * (1 + kZebraGain)) return found;
  ZebraOrder other = beam_search(times, micro_batches, shift, static_cast<size_t>(width));
  const double time = simulate_zebra(times, other, shift).time_s;
  if (time < found.time_s * (1 - kZebraGain)) {
    found.order = std::move(other);
    found.time_s = time;
  }
  return found;
}

}  // namespace hearth
