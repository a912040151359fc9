#include "plan/decisions/makespan_rule.h"

#include <algorithm>
#include <utility>

#include "plan/decisions/divided_expert.h"
#include "plan/decisions/equation_1.h"
#include "plan/decisions/split_model.h"

namespace hearth {

namespace {

using OnDevice = std::vector<uint8_t>;  // by expert

class MakespanSearch {
 public:
  explicit MakespanSearch(const SplitModel& model) : model_(model) {}

  /// The best of what was tried.
  const OnDevice& best() const { return best_; }
  double seconds() const { return seconds_; }

  void try_split(const OnDevice& on_device) {
    const double seconds = model_.seconds(on_device);
    if (!best_.empty() && seconds >= seconds_) return;
    best_ = on_device;
    seconds_ = seconds;
  }

  /// Moves one expert, or exchanges two of neighbouring ranks, whichever helps most, until none helps.
  void improve() {
    // Each round is better than the one before. The bound is for time: rounds are few.
    for (int round = 0; round < kMostRounds; ++round) {
      const double before = seconds_;
      const OnDevice from = best_;
      try_moves(from);
      try_exchanges(from);
      if (seconds_ >= before) return;
    }
  }

 private:
  static constexpr int kMostRounds = 64;
  static constexpr size_t kNeighbours = 8;

  bool has_room(const OnDevice& on_device) const {
    int64_t used = 0;
    for (const int32_t expert : model_.ranking()) used += on_device[static_cast<size_t>(expert)];
    return used < model_.problem().device_experts;
  }

  void try_moves(const OnDevice& from) {
    OnDevice to = from;
    const bool room = has_room(from);
    for (const int32_t expert : model_.ranking()) {
      uint8_t& at = to[static_cast<size_t>(expert)];
      if (at == 0 && !room) continue;
      at ^= 1;
      try_split(to);
      at ^= 1;
    }
  }

  void try_exchanges(const OnDevice& from) {
    OnDevice to = from;
    const auto ranking = model_.ranking();
    for (size_t i = 0; i < ranking.size(); ++i) {
      for (size_t j = i + 1; j < std::min(ranking.size(), i + 1 + kNeighbours); ++j) {
        uint8_t &a = to[static_cast<size_t>(ranking[i])], &b = to[static_cast<size_t>(ranking[j])];
        if (a == b) continue;
        std::swap(a, b);
        try_split(to);
        std::swap(a, b);
      }
    }
  }

  const SplitModel& model_;
  OnDevice best_;
  double seconds_ = 0;
};

OnDevice flags_of(const ExpertSplit& split) {
  OnDevice on_device(split.reasons.size());
  for (const int32_t expert : split.device) on_device[static_cast<size_t>(expert)] = 1;
  return on_device;
}

}  // namespace

ExpertSplit split_by_makespan(const SplitProblem& problem) {
  const SplitModel model(problem);
  MakespanSearch search(model);
  search.try_split(OnDevice(static_cast<size_t>(problem.experts)));
  for (const EquationForm form : {EquationForm::corrected, EquationForm::printed}) {
    search.try_split(flags_of(split_by_equation_1(problem, form)));
  }
  // From what is there anyway to all, or to as many as there is room for.
  OnDevice on_device(static_cast<size_t>(problem.experts));
  int64_t room = problem.device_experts;
  const auto add = [&](int32_t expert) {
    on_device[static_cast<size_t>(expert)] = 1;
    --room;
  };
  for (const int32_t expert : model.ranking()) {
    if (room > 0 && model.is_given(expert)) add(expert);
  }
  search.try_split(on_device);
  for (const int32_t expert : model.ranking()) {
    if (room <= 0 || on_device[static_cast<size_t>(expert)] != 0) continue;
    add(expert);
    search.try_split(on_device);
  }
  search.improve();

  ExpertDivision division{{}, search.best(), search.seconds()};
  if (problem.width > 0) division = best_division(model, search.best());
  ExpertSplit split = model.split_of(division.on_device);
  const bool is_full = std::ssize(split.device) >= problem.device_experts;
  for (const int32_t expert : split.host) {
    SplitReason& reason = split.reasons[static_cast<size_t>(expert)];
    if (model.host_seconds(expert) <= model.device_seconds(expert)) {
      reason = SplitReason::host_cheaper;
    } else {
      reason = is_full ? SplitReason::no_room : SplitReason::host_balance;
    }
  }
  if (!division.divided.any()) return split;
  split.divided = division.divided;
  split.predicted_s = division.seconds;
  split.reasons[static_cast<size_t>(split.divided.expert)] = SplitReason::split;
  return split;
}

}  // namespace hearth
