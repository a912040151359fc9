#include "plan/divided_bound.h"

#include <algorithm>
#include <limits>

namespace hearth {

double least_time_of_longest(std::span<const double> fixed, std::span<const DividedWork> work) {
  double least = 0;
  for (const double seconds : fixed) least = std::max(least, seconds);
  std::vector<double> all(fixed.size());  // seconds of a stream that did all of the work
  for (const DividedWork& w : work) {
    for (const DividedWork::Share& share : w.shares) all[share.stream] += share.seconds;
  }
  std::vector<size_t> order;
  for (size_t s = 0; s < fixed.size(); ++s) {
    if (all[s] > 0) order.push_back(s);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return fixed[a] < fixed[b]; });
  std::vector<double> weight(fixed.size());
  double sum = 0, idle = 0;  // of the weights; of what is fixed, weighted
  for (const size_t s : order) {
    weight[s] = 1 / all[s];
    sum += weight[s];
    idle += weight[s] * fixed[s];
    double divided = 0;
    for (const DividedWork& w : work) {
      double cheapest = std::numeric_limits<double>::max();
      for (const DividedWork::Share& share : w.shares) {
        cheapest = std::min(cheapest, weight[share.stream] * share.seconds);
      }
      if (!w.shares.empty()) divided += cheapest;
    }
    least = std::max(least, (idle + divided) / sum);
  }
  return least;
}

}  // namespace hearth
