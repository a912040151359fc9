// The least time of a group with zebra, whatever the order: branch and bound over active schedules
// (Giffler and Thompson), for small cases. Streams take tasks in any order, exchanges too.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "plan/zebra/zebra_simulation.h"

namespace hearth::test {

class LeastZebraTime {
 public:
  LeastZebraTime(const ZebraTimes& times, int32_t micro_batches)
      : next_(static_cast<size_t>(micro_batches)), ready_(static_cast<size_t>(micro_batches)) {
    const int32_t layers = times.count();
    const auto stage = [&](int32_t at) { return times.stages[static_cast<size_t>(at)]; };
    const auto layer = [&](int32_t at) { return times.layers[static_cast<size_t>(at)]; };
    for (int32_t i = 0; i <= layers; ++i) {
      chain_.push_back({kAttention, stage(i).forward});
      if (i == layers) continue;
      chain_.push_back({kOut, layer(i).out.forward});
      chain_.push_back({kExperts, experts_there(times, i, 0).forward});
      chain_.push_back({kBack, layer(i).back.forward});
    }
    for (int32_t i = layers; i >= 0; --i) {
      chain_.push_back({kAttention, stage(i).backward});
      if (i == 0) continue;
      chain_.push_back({kOut, layer(i - 1).out.backward});
      chain_.push_back({kExperts, experts_there(times, i - 1, 0).backward});
      chain_.push_back({kBack, layer(i - 1).back.backward});
    }
    tail_.resize(chain_.size() + 1);
    for (size_t k = chain_.size(); k-- > 0;) tail_[k] = tail_[k + 1] + chain_[k].seconds;
  }

  /// Less than `upper`, else `upper`; nothing if that takes more than `most` steps.
  std::optional<double> least(double upper, int64_t most = 200'000) {
    best_ = upper;
    left_ = most;
    for (const Link& link : chain_) {
      work_[link.stream] += link.seconds * static_cast<double>(next_.size());
    }
    branch();
    if (left_ < 0) return std::nullopt;
    return best_;
  }

 private:
  enum Stream : uint8_t { kAttention, kOut, kExperts, kBack, kStreams };
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Link {
    Stream stream;
    double seconds;
  };

  double begin(size_t m) const { return std::max(ready_[m], free_[chain_[next_[m]].stream]); }
  bool done(size_t m) const { return next_[m] == chain_.size(); }

  /// No schedule that goes on ends before.
  double bound() const {
    double bound = 0;
    std::array<double, kStreams> reached, after;
    reached.fill(kNever);
    after.fill(kNever);
    for (size_t m = 0; m < next_.size(); ++m) {
      bound = std::max(bound, done(m) ? ready_[m] : begin(m) + tail_[next_[m]]);
      double at = ready_[m];
      for (size_t k = next_[m]; k < chain_.size(); ++k) {
        reached[chain_[k].stream] = std::min(reached[chain_[k].stream], at);
        after[chain_[k].stream] = std::min(after[chain_[k].stream], tail_[k + 1]);
        at += chain_[k].seconds;
      }
    }
    for (size_t s = 0; s < kStreams; ++s) {
      if (work_[s] < 1e-12) continue;
      bound = std::max(bound, std::max(free_[s], reached[s]) + work_[s] + after[s]);
    }
    return bound;
  }

  void branch() {
    if (--left_ < 0) return;
    const double least = bound();
    if (std::ranges::all_of(next_, [&](size_t k) { return k == chain_.size(); })) {
      best_ = std::min(best_, least);
      return;
    }
    if (least >= best_ - 1e-9) return;
    double end = kNever;
    Stream stream = kAttention;
    for (size_t m = 0; m < next_.size(); ++m) {
      if (done(m) || begin(m) + chain_[next_[m]].seconds >= end) continue;
      end = begin(m) + chain_[next_[m]].seconds;
      stream = chain_[next_[m]].stream;
    }
    std::vector<size_t> some;
    for (size_t m = 0; m < next_.size(); ++m) {
      if (done(m) || chain_[next_[m]].stream != stream) continue;
      if (begin(m) >= end && chain_[next_[m]].seconds > 0) continue;
      const auto same = [&](size_t o) { return next_[o] == next_[m] && ready_[o] == ready_[m]; };
      if (std::ranges::none_of(some, same)) some.push_back(m);  // micro-batches are alike
    }
    std::ranges::sort(some, {}, [&](size_t m) { return next_[m]; });
    for (const size_t m : some) {
      const double ready = ready_[m], free = free_[stream], seconds = chain_[next_[m]].seconds;
      ready_[m] = free_[stream] = begin(m) + seconds;
      work_[stream] -= seconds;
      ++next_[m];
      branch();
      --next_[m];
      work_[stream] += seconds;
      ready_[m] = ready;
      free_[stream] = free;
      if (left_ < 0) return;
    }
  }

  std::vector<Link> chain_;  // of a micro-batch
  std::vector<double> tail_;
  std::vector<size_t> next_;
  std::vector<double> ready_;
  std::array<double, kStreams> free_{}, work_{};
  double best_ = 0;
  int64_t left_ = 0;
};

}  // namespace hearth::test
