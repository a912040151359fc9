#include "plan/monotone.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hearth {

std::vector<double> never_falling(std::span<const double> values) {
  struct Run {
    double sum;  // of logarithms
    size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Run> runs;
  for (const double value : values) {
    HEARTH_CHECK(value > 0, "never_falling: a value that is not above 0");
    runs.push_back({std::log(value), 1});
    while (runs.size() > 1 && runs[runs.size() - 2].mean() > runs.back().mean()) {
      const Run last = runs.back();
      runs.pop_back();
      runs.back().sum += last.sum;
      runs.back().count += last.count;
    }
  }
  std::vector<double> result;
  for (const Run& run : runs) {
    // A value that no neighbour moved stays as it is, to the bit.
    const double mean = run.count == 1 ? values[result.size()] : std::exp(run.mean());
    result.insert(result.end(), run.count, mean);
  }
  // Rounding of exp and log must not make a curve fall.
  for (size_t i = 1; i < result.size(); ++i) result[i] = std::max(result[i], result[i - 1]);
  return result;
}

std::vector<int64_t> log_spaced(int64_t most, int64_t count) {
  HEARTH_CHECK(most >= 1 && count >= 2, "log_spaced: sizes out of range");
  std::vector<int64_t> result;
  int64_t last = 0;
  for (int64_t i = 0; i < count && last < most; ++i) {
    // From the last number on, as far apart as the rest allows: small numbers are each taken.
    const double rest = static_cast<double>(most) / static_cast<double>(last > 0 ? last : 1);
    const double factor = std::pow(rest, 1 / static_cast<double>(count - i));
    const auto next = static_cast<int64_t>(std::llround(static_cast<double>(last) * factor));
    last = std::min(most, std::max(last + 1, next));
    result.push_back(last);
  }
  result.back() = most;
  return result;
}

}  // namespace hearth
