// Historical popularity: how many tokens chose each expert in the steps so far, recent steps most.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/state_registry.h"
#include "predictor/predictor.h"

namespace hearth {

struct LayerRank {
  int32_t layer = 0;
  int32_t expert = 0;
  friend bool operator==(const LayerRank&, const LayerRank&) = default;
};

class PopularityHistory {
 public:
  /// At each step's end, what earlier steps left counts `decay` times, 0 to below 1. 0: the last
  /// step alone, as in APTMoE.
  explicit PopularityHistory(const RoutedShape& shape, double decay = 0);

  /// Counts of a micro-batch, for the step under way. Thread-safe for different layers only.
  void add(int32_t layer, std::span<const int64_t> counts);
  /// The step's counts become history. A layer that had none keeps its history.
  void end_step();
  /// The step is abandoned: its counts are forgotten.
  void forget_step();
  /// Of a layer in the step under way, [E].
  std::span<const double> counted(int32_t layer) const { return row(step_, layer); }

  /// By expert of a layer, 0 or more; only their proportions mean something. All 0 before the end of
  /// the first step, unless `start` was called.
  std::span<const double> popularity(int32_t layer) const { return row(history_, layer); }
  /// Begins with counts of a sample of the data, [E]. They are forgotten like those of a step.
  void start(int32_t layer, std::span<const double> counts);
  /// The experts of a layer, the most popular first; of equals the lower number.
  std::vector<int32_t> ranking(int32_t layer) const;
  /// The experts of layers [begin, end) rank by rank: the most popular of each layer, then the second
  /// of each, and so on; within a rank by layer.
  std::vector<LayerRank> by_rank(int32_t begin, int32_t end) const;

  const RoutedShape& shape() const { return shape_; }
  /// As component `name`: f64 [layers, E]. To be saved between steps.
  void register_state(StateRegistry& registry, const std::string& name);

 private:
  std::span<const double> row(const std::vector<double>& of, int32_t layer) const;

  RoutedShape shape_;
  double decay_;
  std::vector<double> history_;  // [layers, E]
  std::vector<double> step_;     // [layers, E] of the step under way
};

/// Foretells what history says, for every micro-batch alike.
class HistoryPredictor final : public Predictor {
 public:
  explicit HistoryPredictor(const RoutedShape& shape, double decay = 0) : history_(shape, decay) {}

  PopularityHistory& history() { return history_; }
  std::optional<PredictorSource> source(int32_t) const override { return std::nullopt; }
  Prediction predict(const RoutedBatch& batch, std::span<const float> rows,
                     const Pool& pool) const override;
  void learn(const RoutedBatch& batch, const RoutedTokens& routed) override;
  void end_step(const Pool& pool) override;
  void register_state(StateRegistry& registry) override;

 private:
  PopularityHistory history_;
};

/// A prediction of `tokens` tokens in proportion to history. Without any history all experts are
/// equally popular.
Prediction predict_by(const PopularityHistory& history, int32_t layer, int64_t tokens);

}  // namespace hearth
