// Foretells the tokens of experts by models of the routers: the online predictor between the splits of
// a step. The models read what the router of an earlier layer reads (APTMoE, III-C 3), or what enters
// the layer itself.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/pool.h"
#include "layers/split.h"
#include "model/spec.h"
#include "plan/decisions/foresight.h"
#include "predictor/prediction_score.h"
#include "predictor/router_predictor.h"

namespace hearth {

/// The layers of a model with experts, and what a predictor of their routers is made with.
std::vector<int32_t> routed_layers(const ModelSpec& spec);
RoutedShape routed_shape(const ModelSpec& spec);
RouterPredictorSettings router_settings(const ModelSpec& spec, const Foresight& foresight);

/// Layers are numbers of the model. What it foretells depends on the sample of the same micro-batch
/// alone, and on what was learned in earlier steps, so no order of the calls changes it.
class RouterForesight {
 public:
  /// `layers`: those with experts, ascending; `micro_batches`: of a step. `pool` trains, between
  /// steps. All arguments that are referred to must outlive the object.
  RouterForesight(std::vector<int32_t> layers, RouterPredictor& predictor, const RoutedShape& shape,
                  int32_t micro_batches, const Pool& pool);

  /// Forgets the samples of a step that was abandoned.
  void begin_step(int64_t step);
  /// The step is whole: learns from it.
  void end_step();
  /// Of the micro-batches of a layer in their order, by one thread at a time; at the same time for
  /// other layers. `entered` only if the models read what enters a layer, then before `sampled`.
  void entered(int32_t layer, std::span<const LayerSample> samples);
  void sampled(const RouterSample& sample);
  /// Foretold choices of micro-batches [begin, begin + count) of a layer, [count, E]. Empty:
  /// unknown, since the layer has no source, or not all of these samples have come.
  std::vector<double> next(int32_t layer, int64_t begin, int64_t count) const;
  /// The layer that router samples of this layer foretell; -1: none.
  int32_t target(int32_t layer) const;
  /// Of the choices of sampled tokens, since the step began.
  PredictionScore score() const;

 private:
  size_t number_of(int32_t layer) const;
  /// With rows [n, H] of a micro-batch of so many tokens.
  void foretell(size_t number, int32_t micro_batch, std::span<const float> rows, int64_t tokens);
  RoutedBatch batch_of(size_t number, int32_t micro_batch, int64_t tokens) const;
  /// The real choices [n, K] of sampled tokens.
  std::vector<int32_t> choices_of(std::span<const float> probs) const;

  const std::vector<int32_t> layers_;
  RouterPredictor& predictor_;
  const RoutedShape shape_;
  const int32_t micro_batches_;
  const Pool& pool_;
  const Pool alone_;  // of the thread that samples
  int64_t step_ = 0;

  mutable std::mutex mutex_;
  std::vector<int32_t> entered_, seen_;  // by number of the layer: micro-batches of this step
  std::vector<std::vector<Prediction>> foretold_;  // by number of the layer and micro-batch
  PredictionScore score_;
};

}  // namespace hearth
