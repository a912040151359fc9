#include "setup/expert_count.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hearth {

int64_t chosen_experts(int64_t experts, double percent) {
  // 28 % of 25 are 7, although 0.28 * 25 is a little more.
  const double exact = percent * static_cast<double>(experts) / 100;
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(exact * (1 - 1e-12))), 1, experts);
}

ExpertChoice placeholder_experts(const ModelSpec& spec, double percent) {
  ExpertChoice choice(static_cast<size_t>(spec.layers));
  for (size_t layer = 0; layer < choice.size(); ++layer) {
    if (!spec.moe[layer]) continue;
    choice[layer].resize(static_cast<size_t>(chosen_experts(spec.experts, percent)));
    std::iota(choice[layer].begin(), choice[layer].end(), 0);
  }
  return choice;
}

}  // namespace hearth
