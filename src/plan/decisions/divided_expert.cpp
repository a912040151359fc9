#include "plan/decisions/divided_expert.h"

#include <utility>

namespace hearth {

namespace {

constexpr double kLeastGain = 0.01;

/// The number from 1 to `most` at which a convex function is least.
template <class F>
int64_t least_of(int64_t most, const F& f) {
  int64_t first = 1, last = most;
  while (first < last) {
    const int64_t middle = (first + last) / 2;
    if (f(middle) <= f(middle + 1)) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

}  // namespace

int64_t divided_columns(int64_t width) { return width >= 256 ? 64 : 4; }

ExpertDivision best_division(const SplitModel& model, std::span<const uint8_t> on_device) {
  const int64_t width = model.problem().width, step = divided_columns(width);
  const int64_t steps = (width - 1) / step;  // of the widest range that leaves the host something
  ExpertDivision best{{}, {on_device.begin(), on_device.end()}, model.seconds(on_device)};
  if (steps == 0) return best;
  double most = (1 - kLeastGain) * best.seconds;
  std::vector<uint8_t> split = best.on_device;
  for (const int32_t expert : model.ranking()) {
    if (!model.is_away(expert)) continue;
    uint8_t& there = split[static_cast<size_t>(expert)];
    const uint8_t before = std::exchange(there, 0);
    // Each resource takes some seconds, and some for each column, so the makespan is convex.
    const auto seconds = [&](int64_t number) {
      return model.seconds(
          split, {expert, static_cast<double>(number * step) / static_cast<double>(width)});
    };
    const int64_t number = least_of(steps, seconds);
    if (const double least = seconds(number); least < most) {
      best = {{expert, number * step}, split, least};
      most = least;
    }
    there = before;
  }
  return best;
}

}  // namespace hearth
