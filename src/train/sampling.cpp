#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace hearth {

int32_t next_token(std::span<const float> logits, double temperature, double top_p,
                   double uniform) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) return static_cast<int32_t>(largest - logits.begin());

  std::vector<double> weight(logits.size());
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    weight[i] = std::exp((static_cast<double>(logits[i]) - *largest) / temperature);
    total += weight[i];
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return weight[static_cast<size_t>(a)] > weight[static_cast<size_t>(b)];
  });
  double kept = 0;
  size_t count = 0;
  while (count < order.size() && (count == 0 || kept < top_p * total)) {
    kept += weight[static_cast<size_t>(order[count++])];
  }
  double left = uniform * kept;
  for (size_t i = 0; i + 1 < count; ++i) {
    left -= weight[static_cast<size_t>(order[i])];
    if (left < 0) return order[i];
  }
  return order[count - 1];
}

}  // namespace hearth
