#include "predictor/group_counts.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

GroupCounts::GroupCounts(int64_t experts, int32_t micro_batches)
    : experts_(static_cast<size_t>(experts)), state_(static_cast<size_t>(micro_batches)) {
  HEARTH_CHECK(experts > 0 && micro_batches > 0, "counts: no experts or no micro-batches");
  tokens_.resize(experts_ * state_.size());
}

void GroupCounts::set_predicted(int32_t micro_batch, std::span<const double> tokens) {
  const auto m = static_cast<size_t>(micro_batch);
  HEARTH_CHECK(m < state_.size() && tokens.size() == experts_, "counts: shapes");
  if (state_[m] == State::real) return;
  state_[m] = State::predicted;
  std::copy(tokens.begin(), tokens.end(), tokens_.begin() + static_cast<int64_t>(m * experts_));
}

void GroupCounts::set_real(int32_t micro_batch, std::span<const int64_t> tokens) {
  const auto m = static_cast<size_t>(micro_batch);
  HEARTH_CHECK(m < state_.size() && tokens.size() == experts_, "counts: shapes");
  state_[m] = State::real;
  std::copy(tokens.begin(), tokens.end(), tokens_.begin() + static_cast<int64_t>(m * experts_));
}

void GroupCounts::clear() { std::fill(state_.begin(), state_.end(), State::unknown); }

int32_t GroupCounts::known() const {
  return static_cast<int32_t>(std::ssize(state_) -
                              std::count(state_.begin(), state_.end(), State::unknown));
}

bool GroupCounts::all_real() const {
  return std::count(state_.begin(), state_.end(), State::real) == std::ssize(state_);
}

std::vector<double> GroupCounts::tokens() const {
  std::vector<double> result;
  for (size_t m = 0; m < state_.size(); ++m) {
    if (state_[m] == State::unknown) continue;
    const auto row = tokens_.begin() + static_cast<int64_t>(m * experts_);
    result.insert(result.end(), row, row + static_cast<int64_t>(experts_));
  }
  return result;
}

std::vector<double> GroupCounts::projected() const {
  const std::vector<double> rows = tokens();
  std::vector<double> sums(experts_);
  for (size_t i = 0; i < rows.size(); ++i) sums[i % experts_] += rows[i];
  if (rows.empty()) return sums;
  const double scale = static_cast<double>(state_.size()) / static_cast<double>(known());
  for (double& n : sums) n *= scale;
  return sums;
}

}  // namespace hearth
