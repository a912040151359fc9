// Times of zebra for tests: cases of the paper, and random ones.
#pragma once

#include "base/random.h"
#include "plan/zebra/zebra_simulation.h"

namespace hearth::test {

/// Every stage and every layer alike. `experts`: of all experts that an expert rank has.
struct ZebraCase {
  int32_t layers = 2, attention_ranks = 1, expert_ranks = 1, experts = 6;
  ZebraTime attention = {1, 2}, there = {1, 2}, here = {1, 2}, out = {}, back = {};

  ZebraTimes times() const {
    const auto share = [&](const ZebraTime& all) {
      const double own = static_cast<double>(experts) / expert_ranks;
      return ZebraTime{all.forward / own, all.backward / own};
    };
    ZebraTimes times{attention_ranks, expert_ranks, experts, {}, {}};
    times.stages.assign(static_cast<size_t>(layers) + 1, attention);
    times.layers.assign(static_cast<size_t>(layers), {share(there), share(here), out, back});
    return times;
  }
};

/// Figure 6 of the paper: T_A : T_E = 3 : 4, an attention rank computes experts in 0.8 of the time.
inline ZebraTimes figure_6() {
  ZebraCase c{.layers = 3, .attention = {3, 6}, .there = {4, 8}, .here = {3.2, 6.4}};
  ZebraTimes times = c.times();
  times.stages.back() = {};
  return times;
}

/// The forward pass of the layers that the figure shows.
inline ZebraOrder forward_of(const ZebraOrder& order, int32_t layers) {
  ZebraOrder forward;
  for (const ZebraTask& task : order) {
    if (task.phase == Phase::forward && task.at < layers) forward.push_back(task);
  }
  return forward;
}

class ZebraRandom {
 public:
  explicit ZebraRandom(uint64_t seed) : random_(seed, RandomSite::shuffle, 43) {}
  double between(double low, double high) { return low + (high - low) * random_.uniform(drawn_++); }
  int32_t integer(int32_t low, int32_t high) {
    return low +
           static_cast<int32_t>(random_.below(drawn_++, static_cast<uint64_t>(high - low + 1)));
  }
  ZebraTime time(double low, double high) { return {between(low, high), between(low, high)}; }
  ZebraCase any(int32_t layers) {
    return {.layers = layers,
            .attention = time(0.1, 2),
            .there = time(0.1, 2),
            .here = time(0.1, 2),
            .out = time(0, 0.5),
            .back = time(0, 0.5)};
  }

 private:
  Random random_;
  uint64_t drawn_ = 0;
};

}  // namespace hearth::test
