#include "predictor/foretell.h"

#include <cmath>
#include <numeric>

#include "predictor/apportion.h"

namespace hearth {

Foretold foretell(std::span<const int64_t> counts, int64_t tokens, double hit,
                  const Random& random) {
  const int64_t choices = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const std::vector<double> weights(counts.begin(), counts.end());
  Foretold result;
  result.hits = counts.size() == 1 ? choices : std::llround(hit * static_cast<double>(choices));
  result.counts = apportion(weights, result.hits, counts);  // the right ones
  std::vector<double> chances;
  std::vector<int64_t> free;
  for (size_t e = 0; e < counts.size(); ++e) {
    chances.push_back(-std::log1p(-random.uniform(e)));
    free.push_back(tokens - result.counts[e]);
  }
  const std::vector<int64_t> wrong = apportion(chances, choices - result.hits, free);
  for (size_t e = 0; e < wrong.size(); ++e) result.counts[e] += wrong[e];
  return result;
}

}  // namespace hearth
