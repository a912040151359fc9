#include "predictor/router_predictor.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "ops/adamw_step.h"
#include "ops/op_table.h"
#include "predictor/soft_router.h"

namespace hearth {

RouterPredictor::RouterPredictor(const RoutedShape& shape, const RouterPredictorSettings& settings,
                                 double history_decay)
    : shape_(shape),
      settings_(settings),
      history_(shape, history_decay),
      training_(shape, settings.hidden, settings.training_rows) {
  HEARTH_CHECK(settings.ahead >= 1 && settings.ahead <= 4, "predictor: 1 to 4 layers ahead");
  HEARTH_CHECK(settings.predicted_rows > 0 && settings.batch_rows > 0 && shape.top_k > 0 &&
                   shape.top_k <= shape.experts,
               "predictor: sizes out of range");
  const auto rows = static_cast<size_t>(shape.layers * shape.experts);
  weight_.resize(rows * static_cast<size_t>(settings.hidden));
  moment1_.resize(weight_.size());
  moment2_.resize(weight_.size());
  updates_.resize(static_cast<size_t>(shape.layers));
  const auto batch = static_cast<size_t>(shape.layers * settings.batch_rows);
  d_logits_.resize(batch * static_cast<size_t>(shape.experts));
  losses_.resize(batch);
}

size_t RouterPredictor::row_at(int32_t layer, int64_t expert) const {
  return static_cast<size_t>((layer * shape_.experts + expert) * settings_.hidden);
}

std::span<const float> RouterPredictor::weight_of(const std::vector<float>& of,
                                                  int32_t layer) const {
  return std::span(of).subspan(row_at(layer, 0), row_at(1, 0));
}

void RouterPredictor::start(int32_t layer, std::span<const float> router,
                            std::span<const float> norm) {
  HEARTH_CHECK(source(layer), "predictor: the layer has no source");
  HEARTH_CHECK(router.size() == row_at(1, 0), "predictor: other shape of the router");
  const bool is_normed = settings_.input == PredictorInput::layer;
  HEARTH_CHECK(std::ssize(norm) == (is_normed ? settings_.hidden : 0), "predictor: the norm");
  for (size_t i = 0; i < router.size(); ++i) {
    weight_[row_at(layer, 0) + i] = is_normed ? router[i] * norm[i % norm.size()] : router[i];
  }
}

std::optional<PredictorSource> RouterPredictor::source(int32_t layer) const {
  HEARTH_CHECK(layer >= 0 && layer < shape_.layers, "predictor: no such layer");
  if (settings_.input == PredictorInput::layer) return PredictorSource{settings_.input, layer};
  if (layer < settings_.ahead) return std::nullopt;
  return PredictorSource{settings_.input, layer - settings_.ahead};
}

Prediction RouterPredictor::predict(const RoutedBatch& batch, std::span<const float> rows,
                                    const Pool& pool) const {
  if (!source(batch.layer)) return predict_by(history_, batch.layer, batch.tokens);
  const auto hidden = static_cast<size_t>(settings_.hidden);
  const auto k = static_cast<size_t>(shape_.top_k);
  HEARTH_CHECK(std::ssize(rows) == batch.tokens * settings_.hidden, "predictor: other rows");
  Prediction result;
  result.rows = spread_rows(batch.tokens, settings_.predicted_rows);
  result.choices.resize(result.rows.size() * k);
  pool.run(std::ssize(result.rows), [&](int64_t i, int /*worker*/) {
    const auto at = static_cast<size_t>(i);
    std::span<const float> row =
        rows.subspan(static_cast<size_t>(result.rows[at]) * hidden, hidden);
    std::vector<float> normed;
    if (settings_.input == PredictorInput::layer) {
      normed.resize(hidden);
      divide_by_rms(row, settings_.norm_eps, normed);
      row = normed;
    }
    std::vector<float> logits(static_cast<size_t>(shape_.experts));
    soft_logits<float>(weight(batch.layer), row, logits);
    choose_experts(logits, std::span(result.choices).subspan(at * k, k));
  });
  std::vector<int64_t> counts(static_cast<size_t>(shape_.experts));
  for (const int32_t expert : result.choices) ++counts[static_cast<size_t>(expert)];
  const double scale = result.rows.empty() ? 0
                                           : static_cast<double>(batch.tokens) /
                                                 static_cast<double>(result.rows.size());
  for (const int64_t n : counts) result.tokens.push_back(static_cast<double>(n) * scale);
  return result;
}

void RouterPredictor::learn(const RoutedBatch& batch, const RoutedTokens& routed) {
  history_.add(batch.layer, routed.counts);
  if (!source(batch.layer)) return;
  if (!routed.rows.empty()) training_.keep_source(batch, routed.rows);
  training_.keep_probs(batch, routed.probs);
}

uint64_t RouterPredictor::bytes(const RoutedShape& shape, const RouterPredictorSettings& settings) {
  const auto experts = static_cast<uint64_t>(shape.layers * shape.experts);
  const auto batch = static_cast<uint64_t>(shape.layers * settings.batch_rows);
  return 3 * sizeof(float) * experts * static_cast<uint64_t>(settings.hidden) +
         2 * sizeof(double) * experts + sizeof(int64_t) * static_cast<uint64_t>(shape.layers) +
         batch * (sizeof(float) * static_cast<uint64_t>(shape.experts) + sizeof(double)) +
         TrainingRows::bytes(shape, settings.hidden, settings.training_rows);
}

void RouterPredictor::update(std::span<const TrainingRows::Kept> kept, int64_t begin,
                             const Pool& pool) {
  const auto experts = static_cast<size_t>(shape_.experts);
  const auto hidden = static_cast<size_t>(settings_.hidden);
  const auto rows_of = [&](int64_t layer) {
    const int64_t left = kept[static_cast<size_t>(layer)].count - begin;
    return std::clamp<int64_t>(left, 0, settings_.batch_rows);
  };
  pool.run(shape_.layers * settings_.batch_rows, [&](int64_t tile, int /*worker*/) {
    const int64_t layer = tile / settings_.batch_rows, i = tile % settings_.batch_rows;
    losses_[static_cast<size_t>(tile)] = 0;
    if (i >= rows_of(layer)) return;
    const TrainingRows::Kept& from = kept[static_cast<size_t>(layer)];
    const auto row = static_cast<size_t>(begin + i);
    const std::span<float> d =
        std::span(d_logits_).subspan(static_cast<size_t>(tile) * experts, experts);
    soft_logits<float>(weight(static_cast<int32_t>(layer)), from.rows.subspan(row * hidden, hidden),
                       d);
    losses_[static_cast<size_t>(tile)] = soft_cross_entropy<float>(
        d, from.probs.subspan(row * experts, experts), 1 / static_cast<float>(rows_of(layer)), d);
  });
  pool.run(shape_.layers * shape_.experts, [&](int64_t tile, int /*worker*/) {
    const int64_t layer = tile / shape_.experts, expert = tile % shape_.experts;
    const auto rows = static_cast<size_t>(rows_of(layer));
    if (rows == 0) return;
    const size_t first = static_cast<size_t>(layer * settings_.batch_rows) * experts;
    std::vector<float> gradient(hidden);
    soft_gradient<float>(std::span<const float>(d_logits_).subspan(first, rows * experts),
                         kept[static_cast<size_t>(layer)].rows.subspan(
                             static_cast<size_t>(begin) * hidden, rows * hidden),
                         shape_.experts, expert, gradient);
    AdamWOptions options;
    options.lr = settings_.lr;
    options.step = updates_[static_cast<size_t>(layer)] + 1;
    const AdamWStep step = adamw_step(options);
    const size_t at = row_at(static_cast<int32_t>(layer), expert);
    for (size_t h = 0; h < hidden; ++h) {
      float &m = moment1_[at + h], &v = moment2_[at + h];
      m = step.beta1 * m + step.rest1 * gradient[h];
      v = step.beta2 * v + step.rest2 * gradient[h] * gradient[h];
      weight_[at + h] -= step.rate * m / (std::sqrt(v) * step.root_c2 + step.eps);
    }
  });
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    updates_[static_cast<size_t>(layer)] += rows_of(layer) > 0 ? 1 : 0;
  }
}

void RouterPredictor::end_step(const Pool& pool) {
  history_.end_step();
  std::vector<TrainingRows::Kept> kept;
  int64_t most = 0;
  for (int32_t layer = 0; layer < shape_.layers; ++layer) {
    kept.push_back(training_.take(layer));
    most = std::max(most, kept.back().count);
    if (settings_.input != PredictorInput::layer) continue;
    const auto hidden = static_cast<size_t>(settings_.hidden);
    for (size_t at = 0; at < kept.back().rows.size(); at += hidden) {
      const std::span<float> row = kept.back().rows.subspan(at, hidden);
      divide_by_rms(row, settings_.norm_eps, row);
    }
  }
  double loss = 0;
  int64_t rows = 0;
  for (int64_t begin = 0; begin < most; begin += settings_.batch_rows) {
    update(kept, begin, pool);
    for (const double one : losses_) loss += one;
  }
  for (const TrainingRows::Kept& one : kept) rows += one.count;
  if (rows > 0) loss_ = loss / static_cast<double>(rows);
}

namespace {

std::string component_of(const RouterPredictorSettings& settings) {
  if (settings.input == PredictorInput::layer) return "predictor-pre-attention";
  return settings.ahead == 1 ? "predictor" : "predictor-" + std::to_string(settings.ahead);
}

}  // namespace

void RouterPredictor::register_state(StateRegistry& registry) {
  history_.register_state(registry, "popularity");
  registry.add({component_of(settings_),
                [this] {
                  const auto view = [this](const char* name, std::vector<float>& of) {
                    return StateView{
                        name, DType::f32,    {shape_.layers, shape_.experts, settings_.hidden},
                        0,    shape_.layers, std::as_writable_bytes(std::span(of))};
                  };
                  return std::vector<StateView>{
                      view("weight", weight_), view("moment1", moment1_), view("moment2", moment2_),
                      StateView{"updates",
                                DType::i64,
                                {shape_.layers},
                                0,
                                shape_.layers,
                                std::as_writable_bytes(std::span(updates_))}};
                },
                {},
                [this] {
                  const auto is_bad = [](int64_t n) { return n < 0 || n > int64_t{1} << 60; };
                  if (std::any_of(updates_.begin(), updates_.end(), is_bad)) {
                    throw storage_error("predictor: a count of updates is out of range");
                  }
                },
                true});
}

}  // namespace hearth
