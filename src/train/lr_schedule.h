// The learning rate of a step, a pure function of its number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "setup/config.h"

namespace hearth {

/// Step s (from 0) of n, with w warm-up steps: lr * s / w while s < w. Then, with x = (s - w) / (n
/// - w): constant lr, linear lr * (1 - x), cosine lr * (1 + cos(pi x)) / 2. The first warm-up step
/// has rate 0, as in transformers.
inline double learning_rate(LrSchedule schedule, double lr, int64_t s, int64_t n, int64_t w) {
  if (s < w) return lr * static_cast<double>(s) / static_cast<double>(w);
  const double x = n > w ? static_cast<double>(s - w) / static_cast<double>(n - w) : 0.0;
  switch (schedule) {
    case LrSchedule::constant: return lr;
    case LrSchedule::linear: return lr * (1 - x);
    case LrSchedule::cosine: return lr * (1 + std::cos(std::numbers::pi * x)) / 2;
  }
  return lr;
}

/// The largest rate of the run: at the end of the warm-up, or at the last step if all steps are
/// warm-up.
inline double largest_learning_rate(const TrainConfig& config, int64_t steps, int64_t warmup) {
  const int64_t s = std::max<int64_t>(0, std::min(warmup, steps - 1));
  return learning_rate(config.lr_schedule, config.lr, s, steps, warmup);
}

/// Warm-up steps: the option, else warmup_ratio of all steps, rounded up as in transformers.
inline int64_t warmup_steps(const TrainConfig& config, int64_t steps) {
  if (config.warmup) return *config.warmup;
  return static_cast<int64_t>(std::ceil(config.warmup_ratio * static_cast<double>(steps)));
}

}  // namespace hearth
