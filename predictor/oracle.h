// A predictor that knows the counts: for studies of what a perfect prediction is worth.
#pragma once

#include <functional>

#include "predictor/predictor.h"

namespace hearth {

class OraclePredictor final : public Predictor {
 public:
  /// Tokens by expert of a micro-batch at a layer, [E]: of a recorded or a synthetic routing.
  using Counts = std::function<std::span<const int64_t>(const RoutedBatch&)>;

  explicit OraclePredictor(Counts counts) : counts_(std::move(counts)) {}

  std::optional<PredictorSource> source(int32_t) const override { return std::nullopt; }
  Prediction predict(const RoutedBatch& batch, std::span<const float>, const Pool&) const override {
    const std::span<const int64_t> counts = counts_(batch);
    return {.tokens = {counts.begin(), counts.end()}, .rows = {}, .choices = {}};
  }
  void learn(const RoutedBatch&, const RoutedTokens&) override {}
  void end_step(const Pool&) override {}
  void register_state(StateRegistry&) override {}  // it has none

 private:
  Counts counts_;
};

}  // namespace hearth
