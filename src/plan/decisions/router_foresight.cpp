#include "plan/decisions/router_foresight.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "predictor/soft_router.h"

namespace hearth {

std::vector<int32_t> routed_layers(const ModelSpec& spec) {
  std::vector<int32_t> layers;
  for (int32_t layer = 0; layer < spec.layers; ++layer) {
    if (spec.has_experts(layer)) layers.push_back(layer);
  }
  return layers;
}

RoutedShape routed_shape(const ModelSpec& spec) {
  return {static_cast<int32_t>(spec.moe_layers()), spec.experts, spec.experts_per_token};
}

RouterPredictorSettings router_settings(const ModelSpec& spec, const Foresight& foresight) {
  RouterPredictorSettings settings;
  settings.hidden = spec.hidden;
  settings.input = foresight.predictor == ForetoldBy::pre_attention ? PredictorInput::layer
                                                                    : PredictorInput::router;
  settings.ahead = foresight.ahead;
  settings.norm_eps = spec.norm_eps;
  settings.predicted_rows = 64;  // while the layer's other tasks wait
  return settings;
}

RouterForesight::RouterForesight(std::vector<int32_t> layers, RouterPredictor& predictor,
                                 const RoutedShape& shape, int32_t micro_batches, const Pool& pool)
    : layers_(std::move(layers)),
      predictor_(predictor),
      shape_(shape),
      micro_batches_(micro_batches),
      pool_(pool),
      alone_(1) {
  HEARTH_CHECK(std::ssize(layers_) == shape.layers, "foresight: other layers");
  begin_step(0);
}

void RouterForesight::begin_step(int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  entered_.assign(layers_.size(), 0);
  seen_.assign(layers_.size(), 0);
  foretold_.assign(layers_.size(), std::vector<Prediction>(static_cast<size_t>(micro_batches_)));
  score_ = {};
  predictor_.history().forget_step();
}

void RouterForesight::end_step() { predictor_.end_step(pool_); }

size_t RouterForesight::number_of(int32_t layer) const {
  const auto found = std::ranges::find(layers_, layer);
  HEARTH_CHECK(found != layers_.end(), "foresight: a layer without experts");
  return static_cast<size_t>(found - layers_.begin());
}

RoutedBatch RouterForesight::batch_of(size_t number, int32_t micro_batch, int64_t tokens) const {
  return {.step = step_,
          .layer = static_cast<int32_t>(number),
          .micro_batch = micro_batch,
          .micro_batches = micro_batches_,
          .tokens = tokens};
}

int32_t RouterForesight::target(int32_t layer) const {
  if (predictor_.settings().input != PredictorInput::router) return -1;
  const size_t number = number_of(layer) + static_cast<size_t>(predictor_.settings().ahead);
  return number < layers_.size() ? layers_[number] : -1;
}

std::vector<int32_t> RouterForesight::choices_of(std::span<const float> probs) const {
  const auto experts = static_cast<size_t>(shape_.experts), k = static_cast<size_t>(shape_.top_k);
  std::vector<int32_t> choices(probs.size() / experts * k);
  for (size_t t = 0; t < probs.size() / experts; ++t) {
    choose_experts(probs.subspan(t * experts, experts), std::span(choices).subspan(t * k, k));
  }
  return choices;
}

void RouterForesight::foretell(size_t number, int32_t micro_batch, std::span<const float> rows,
                               int64_t tokens) {
  const int64_t sampled = std::ssize(rows) / predictor_.settings().hidden;
  const RoutedBatch batch = batch_of(number, micro_batch, sampled);
  predictor_.learn_source(batch, rows);
  Prediction prediction = predictor_.predict(batch, rows, alone_);
  for (double& n : prediction.tokens) {
    n *= static_cast<double>(tokens) / static_cast<double>(std::max<int64_t>(1, sampled));
  }
  const std::lock_guard lock(mutex_);
  foretold_[number][static_cast<size_t>(micro_batch)] = std::move(prediction);
}

void RouterForesight::entered(int32_t layer, std::span<const LayerSample> samples) {
  const size_t number = number_of(layer);
  for (const LayerSample& sample : samples) {
    int32_t micro_batch = 0;
    {
      const std::lock_guard lock(mutex_);
      micro_batch = entered_[number]++;
    }
    HEARTH_CHECK(micro_batch < micro_batches_, "foresight: more micro-batches than the step has");
    foretell(number, micro_batch, sample.residual, sample.tokens);
  }
}

void RouterForesight::sampled(const RouterSample& sample) {
  const size_t number = number_of(sample.layer);
  const int64_t tokens = std::ssize(sample.probs) / shape_.experts;
  const std::vector<int64_t> counts(sample.counts.begin(), sample.counts.end());
  int32_t micro_batch = 0;
  {
    const std::lock_guard lock(mutex_);
    micro_batch = seen_[number]++;
    HEARTH_CHECK(micro_batch < micro_batches_, "foresight: more micro-batches than the step has");
    const Prediction& foretold = foretold_[number][static_cast<size_t>(micro_batch)];
    if (!foretold.tokens.empty()) {
      score_.add(foretold, shape_.top_k, counts, choices_of(sample.probs));
    }
  }
  RoutedTokens routed{.counts = counts};
  routed.probs = sample.probs;
  predictor_.learn(batch_of(number, micro_batch, tokens), routed);
  const int32_t later = target(sample.layer);
  if (later >= 0) foretell(number_of(later), micro_batch, sample.normed, sample.tokens);
}

std::vector<double> RouterForesight::next(int32_t layer, int64_t begin, int64_t count) const {
  const size_t number = number_of(layer);
  std::vector<double> tokens;
  const std::lock_guard lock(mutex_);
  for (int64_t m = begin; m < begin + count; ++m) {
    if (m >= micro_batches_) return {};
    const std::vector<double>& of = foretold_[number][static_cast<size_t>(m)].tokens;
    if (of.empty()) return {};
    tokens.insert(tokens.end(), of.begin(), of.end());
  }
  return tokens;
}

PredictionScore RouterForesight::score() const {
  const std::lock_guard lock(mutex_);
  return score_;
}

}  // namespace hearth
