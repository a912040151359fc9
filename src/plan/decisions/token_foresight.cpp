#include "plan/decisions/token_foresight.h"

#include <algorithm>
#include <numeric>

namespace hearth {

TokenForesight::TokenForesight(int64_t layers, int64_t experts, int64_t top_k, int64_t groups)
    : groups_(std::max<int64_t>(1, groups)),
      history_({static_cast<int32_t>(layers), experts, top_k}),
      groups_counted_(static_cast<size_t>(layers)) {}

std::vector<double> TokenForesight::next(size_t layer) const {
  const std::span<const double> before = history(layer);
  const std::span<const double> now = history_.counted(static_cast<int32_t>(layer));
  const bool has_history = std::ranges::any_of(before, [](double n) { return n > 0; });
  const int64_t groups = (has_history ? groups_ : 0) + groups_counted_[layer];
  std::vector<double> tokens;
  for (size_t e = 0; groups > 0 && e < before.size(); ++e) {
    tokens.push_back((before[e] + now[e]) / static_cast<double>(groups));
  }
  return tokens;
}

void TokenForesight::counted(size_t layer, std::span<const double> tokens,
                             std::span<const double> foretold, std::span<const int32_t> loads,
                             std::span<const int32_t> used, ForetoldBy by) {
  const std::vector<int64_t> counts(tokens.begin(), tokens.end());
  if (!foretold.empty()) {
    if (by == ForetoldBy::history || by == ForetoldBy::oracle) {
      score_.add({.tokens = {foretold.begin(), foretold.end()}, .rows = {}, .choices = {}},
                 history_.shape().top_k, counts);
    }
    std::vector<uint8_t> asked(tokens.size()), computed(tokens.size());
    for (const int32_t e : loads) asked[static_cast<size_t>(e)] = 1;
    for (const int32_t e : used) computed[static_cast<size_t>(e)] = 1;
    score_.add_loads(asked, computed, std::vector<double>(tokens.size(), 1));
  }
  history_.add(static_cast<int32_t>(layer), counts);
  ++groups_counted_[layer];
}

void TokenForesight::end_step() {
  history_.end_step();
  std::ranges::fill(groups_counted_, 0);
}

void TokenForesight::forget_step() {
  history_.forget_step();
  std::ranges::fill(groups_counted_, 0);
  score_ = {};
}

void TokenForesight::set_history(size_t layer, std::span<const double> tokens) {
  history_.start(static_cast<int32_t>(layer), tokens);
}

}  // namespace hearth
