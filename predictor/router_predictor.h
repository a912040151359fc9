// Online predictors with the shape of a router: for each layer a linear map from an earlier hidden
// state to the layer's experts. The weights start as those of the layer's router and are trained
// beside the run, with the cross-entropy to what the router says (APTMoE, III-C 3).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "predictor/history.h"
#include "predictor/predictor.h"
#include "predictor/training_rows.h"

namespace hearth {

struct RouterPredictorSettings {
  int64_t hidden = 0;
  /// PredictorInput::router: reads what enters the router `ahead` layers before, 1 to 4.
  /// PredictorInput::layer (pre-attention): reads what enters the layer itself; `ahead` is not used.
  PredictorInput input = PredictorInput::router;
  int32_t ahead = 1;
  double norm_eps = 1e-6;  // of pre-attention rows, which are divided by their root mean square
  int64_t predicted_rows = 512;  // most tokens of a micro-batch whose choices are foretold
  int64_t training_rows = 256;   // of a layer and step
  int64_t batch_rows = 128;      // of an update
  double lr = 1e-3;              // of AdamW without decay
};

/// Weights, gradients and updates are f32 on the host. All results have the same bits with any number
/// of workers. What foretells a layer without a source (the first layers of the model) is history.
class RouterPredictor final : public Predictor {
 public:
  RouterPredictor(const RoutedShape& shape, const RouterPredictorSettings& settings,
                  double history_decay = 0);

  /// Sets the weights of a layer that has a source, before the first step: the weight of its router,
  /// [E, H]. Pre-attention: `norm`, [H], is the weight of the norm before the router. It becomes part
  /// of the predictor's weights.
  void start(int32_t layer, std::span<const float> router, std::span<const float> norm = {});
  PopularityHistory& history() { return history_; }
  const RoutedShape& shape() const { return shape_; }
  const RouterPredictorSettings& settings() const { return settings_; }
  std::span<const float> weight(int32_t layer) const { return weight_of(weight_, layer); }
  /// Of the last step that learned something: the mean cross-entropy of its training rows, each
  /// before the update that it is for. 0 before the first.
  double loss() const { return loss_; }

  std::optional<PredictorSource> source(int32_t layer) const override;
  Prediction predict(const RoutedBatch& batch, std::span<const float> rows,
                     const Pool& pool) const override;
  void learn(const RoutedBatch& batch, const RoutedTokens& routed) override;
  /// The rows of a layer's source, before `learn` without rows of the same batch.
  void learn_source(const RoutedBatch& batch, std::span<const float> rows) {
    training_.keep_source(batch, rows);
  }
  void end_step(const Pool& pool) override;
  /// What such a predictor takes.
  static uint64_t bytes(const RoutedShape& shape, const RouterPredictorSettings& settings);
  /// The component `popularity`, and one of the predictor: `weight`, `moment1`, `moment2` f32
  /// [layers, E, H] and `updates` i64 [layers]. What was learned of other rows fits no other predictor,
  /// so each has a name of its own: `predictor` with `ahead` 1, `predictor-2` with 2 and so on,
  /// `predictor-pre-attention`.
  void register_state(StateRegistry& registry) override;

 private:
  std::span<const float> weight_of(const std::vector<float>& of, int32_t layer) const;
  size_t row_at(int32_t layer, int64_t expert) const;
  /// Of rows [begin, end) of each layer that has so many.
  void update(std::span<const TrainingRows::Kept> kept, int64_t begin, const Pool& pool);

  RoutedShape shape_;
  RouterPredictorSettings settings_;
  PopularityHistory history_;
  TrainingRows training_;
  std::vector<float> weight_, moment1_, moment2_;  // [layers, E, H]
  std::vector<int64_t> updates_;                   // by layer
  std::vector<float> d_logits_;                    // [layers, batch rows, E]
  std::vector<double> losses_;                     // [layers, batch rows]
  double loss_ = 0;
};

}  // namespace hearth
