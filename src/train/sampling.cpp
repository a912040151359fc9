#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace hearth {

void penalize_repetition(std::span<float> logits, std::span<const int32_t> seen, double penalty) {
  if (penalty == 1) return;
  const auto by = static_cast<float>(penalty);
  std::vector<int32_t> tokens(seen.begin(), seen.end());
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const int32_t token : tokens) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit < 0 ? logit * by : logit / by;
  }
}

int32_t next_token(std::span<const float> logits, const Sampling& sampling, double uniform) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature <= 0) return static_cast<int32_t>(largest - logits.begin());

  std::vector<double> weight(logits.size());  // of the largest: 1
  for (size_t i = 0; i < logits.size(); ++i) {
    weight[i] = std::exp((static_cast<double>(logits[i]) - *largest) / sampling.temperature);
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return weight[static_cast<size_t>(a)] > weight[static_cast<size_t>(b)];
  });
  const auto at = [&](size_t place) { return weight[static_cast<size_t>(order[place])]; };

  // Each rule keeps a front of the order.
  size_t count = order.size();
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < count) {
    const double least = at(static_cast<size_t>(sampling.top_k) - 1);
    count = static_cast<size_t>(sampling.top_k);
    while (count < order.size() && at(count) == least) ++count;
  }
  double total = 0;
  if (count == order.size()) {
    // In the order of ids, so that the sum does not depend on how ties are sorted.
    for (const double w : weight) total += w;
  } else {
    for (size_t i = 0; i < count; ++i) total += at(i);
  }
  double kept = 0;
  size_t taken = 0;
  while (taken < count && (taken == 0 || kept < sampling.top_p * total)) kept += at(taken++);
  while (taken > 1 && at(taken - 1) < sampling.min_p) kept -= at(--taken);

  double left = uniform * kept;
  for (size_t i = 0; i + 1 < taken; ++i) {
    left -= at(i);
    if (left < 0) return order[i];
  }
  return order[taken - 1];
}

}  // namespace hearth
