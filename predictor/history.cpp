#include "predictor/history.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "predictor/persistence.h"

namespace hearth {

PopularityHistory::PopularityHistory(const RoutedShape& shape, double decay)
    : shape_(shape), decay_(decay) {
  HEARTH_CHECK(shape.layers > 0 && shape.experts > 0, "history: no layers or no experts");
  HEARTH_CHECK(decay >= 0 && decay < 1, "history: the decay is not in [0, 1)");
  history_.resize(static_cast<size_t>(shape.layers * shape.experts));
  step_.resize(history_.size());
}

std::span<const double> PopularityHistory::row(const std::vector<double>& of, int32_t layer) const {
  HEARTH_CHECK(layer >= 0 && layer < shape_.layers, "history: no such layer");
  return std::span(of).subspan(static_cast<size_t>(layer * shape_.experts),
                               static_cast<size_t>(shape_.experts));
}

void PopularityHistory::add(int32_t layer, std::span<const int64_t> counts) {
  HEARTH_CHECK(std::ssize(counts) == shape_.experts, "history: other number of experts");
  const size_t at = static_cast<size_t>(row(step_, layer).data() - step_.data());
  for (size_t e = 0; e < counts.size(); ++e) step_[at + e] += static_cast<double>(counts[e]);
}

void PopularityHistory::end_step() {
  for (int32_t layer = 0; layer < shape_.layers; ++layer) {
    const std::span<const double> counts = row(step_, layer);
    if (std::all_of(counts.begin(), counts.end(), [](double n) { return n == 0; })) continue;
    const auto at = static_cast<size_t>(counts.data() - step_.data());
    for (size_t e = 0; e < counts.size(); ++e) {
      history_[at + e] = decay_ * history_[at + e] + counts[e];
    }
  }
  forget_step();
}

void PopularityHistory::forget_step() { std::fill(step_.begin(), step_.end(), 0.0); }

void PopularityHistory::start(int32_t layer, std::span<const double> counts) {
  HEARTH_CHECK(std::ssize(counts) == shape_.experts, "history: other number of experts");
  const auto at = static_cast<size_t>(row(history_, layer).data() - history_.data());
  std::copy(counts.begin(), counts.end(), history_.begin() + static_cast<int64_t>(at));
}

std::vector<int32_t> PopularityHistory::ranking(int32_t layer) const {
  const std::span<const double> tokens = popularity(layer);
  std::vector<double> negative(tokens.begin(), tokens.end());
  for (double& n : negative) n = -n;
  return least_popular_first(negative);  // equals in the order of their numbers
}

std::vector<LayerRank> PopularityHistory::by_rank(int32_t begin, int32_t end) const {
  std::vector<std::vector<int32_t>> rankings;
  for (int32_t layer = begin; layer < end; ++layer) rankings.push_back(ranking(layer));
  std::vector<LayerRank> order;
  for (size_t rank = 0; rank < static_cast<size_t>(shape_.experts); ++rank) {
    for (size_t i = 0; i < rankings.size(); ++i) {
      order.push_back({begin + static_cast<int32_t>(i), rankings[i][rank]});
    }
  }
  return order;
}

void PopularityHistory::register_state(StateRegistry& registry, const std::string& name) {
  registry.add({name,
                [this] {
                  return std::vector<StateView>{{"tokens",
                                                 DType::f64,
                                                 {shape_.layers, shape_.experts},
                                                 0,
                                                 shape_.layers,
                                                 std::as_writable_bytes(std::span(history_))}};
                },
                {},
                [this] {
                  const auto is_bad = [](double n) { return !(n >= 0 && std::isfinite(n)); };
                  if (std::any_of(history_.begin(), history_.end(), is_bad)) {
                    throw storage_error("popularity: a count of tokens is out of range");
                  }
                },
                true});
}

Prediction predict_by(const PopularityHistory& history, int32_t layer, int64_t tokens) {
  const std::span<const double> popularity = history.popularity(layer);
  double sum = 0;
  for (const double n : popularity) sum += n;
  const auto choices = static_cast<double>(tokens * history.shape().top_k);
  Prediction result;
  for (const double n : popularity) {
    const double share = sum > 0 ? n / sum : 1 / static_cast<double>(popularity.size());
    result.tokens.push_back(choices * share);
  }
  return result;
}

Prediction HistoryPredictor::predict(const RoutedBatch& batch, std::span<const float> /*rows*/,
                                     const Pool& /*pool*/) const {
  return predict_by(history_, batch.layer, batch.tokens);
}

void HistoryPredictor::learn(const RoutedBatch& batch, const RoutedTokens& routed) {
  history_.add(batch.layer, routed.counts);
}

void HistoryPredictor::end_step(const Pool& /*pool*/) { history_.end_step(); }

void HistoryPredictor::register_state(StateRegistry& registry) {
  history_.register_state(registry, "popularity");
}

}  // namespace hearth
