// The learning rate of a step, a pure function of its number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "setup/config.h"

namespace hearth {

/// The rates of a run, relative to --lr.
struct LrCourse {
  LrSchedule schedule = LrSchedule::cosine;
  int64_t steps = 1;
  int64_t warmup = 0;
  double least = 0;  // of cosine_with_min_lr and wsd: where they end
};

/// The last tenth of the steps, in which wsd comes down; at most what the warm-up leaves.
inline int64_t decay_steps(const LrCourse& c) {
  return std::clamp<int64_t>((c.steps + 9) / 10, 1, std::max<int64_t>(1, c.steps - c.warmup));
}

/// The factor of step s, from 0, by transformers' formulas. With w warm-up steps s / w while s < w, so
/// the first has rate 0. Then, with x = (s - w) / (n - w): constant 1; linear 1 - x; cosine
/// (1 + cos(pi x)) / 2; cosine_with_min_lr the same between 1 and `least`; inverse_sqrt
/// sqrt(t / (t + s - w)), where t is w, or 10,000 without warm-up; wsd 1, in the last steps straight
/// to `least`.
inline double lr_factor(const LrCourse& c, int64_t s) {
  const auto ratio = [](int64_t a, int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  const bool from_least = c.schedule == LrSchedule::wsd;
  if (s < c.warmup) {
    const double up = ratio(s, c.warmup);
    return from_least ? c.least + (1 - c.least) * up : up;
  }
  const double x = c.steps > c.warmup ? ratio(s - c.warmup, c.steps - c.warmup) : 0.0;
  const double cosine = (1 + std::cos(std::numbers::pi * x)) / 2;
  switch (c.schedule) {
    case LrSchedule::constant: return 1;
    case LrSchedule::linear: return 1 - x;
    case LrSchedule::cosine: return cosine;
    case LrSchedule::cosine_with_min_lr: return c.least + (1 - c.least) * cosine;
    case LrSchedule::inverse_sqrt: {
      const int64_t scale = c.warmup > 0 ? c.warmup : 10'000;
      return 1 / std::sqrt(ratio(scale + s - c.warmup, scale));
    }
    case LrSchedule::wsd: {
      const int64_t decay = decay_steps(c), begin = c.steps - decay;
      if (s < begin) return 1;
      return c.least + (1 - c.least) * (1 - ratio(s - begin, decay));
    }
  }
  return 1;
}

/// Warm-up steps: the option, else the share of all steps, rounded up as in transformers. By default
/// 3 %, but at most a tenth of the steps: a run of fewer than 10 steps has none.
inline int64_t warmup_steps(const TrainConfig& config, int64_t steps) {
  if (config.warmup) return *config.warmup;
  const double share = config.warmup_ratio.value_or(0.03) * static_cast<double>(steps);
  const auto rounded_up = static_cast<int64_t>(std::ceil(share));
  return config.warmup_ratio ? rounded_up : std::min(rounded_up, steps / 10);
}

inline LrCourse lr_course(const TrainConfig& config, int64_t steps) {
  const double least = config.lr_schedule == LrSchedule::wsd ? 0 : 0.1;
  return {config.lr_schedule, steps, warmup_steps(config, steps),
          config.min_lr_ratio.value_or(least)};
}

/// The largest rate of the run: at the end of the warm-up, or at the last step if all steps are
/// warm-up.
inline double largest_learning_rate(const TrainConfig& config, const LrCourse& course) {
  return config.lr *
         lr_factor(course, std::max<int64_t>(0, std::min(course.warmup, course.steps - 1)));
}

}  // namespace hearth
