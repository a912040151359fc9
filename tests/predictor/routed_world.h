// A routing made token by token, with hidden states that move slowly from layer to layer: what
// predictors read and are measured against.
#pragma once

#include <cmath>
#include <vector>

#include "base/random.h"
#include "predictor/predictor.h"
#include "predictor/soft_router.h"

namespace hearth::test {

/// Layer l's hidden state of a token is that of layer l - 1 times `keep`, plus fresh noise, so that it
/// has the same variance in all layers. keep = 0: layers have nothing in common. Routers are random.
class RoutedWorld {
 public:
  RoutedWorld(const RoutedShape& shape, int64_t hidden, double keep, uint64_t seed)
      : shape_(shape), hidden_(hidden), keep_(keep), seed_(seed) {
    for (int32_t layer = 0; layer < shape.layers; ++layer) {
      const Random random(seed, RandomSite::init, 1, static_cast<uint32_t>(layer));
      std::vector<float> weight(static_cast<size_t>(shape.experts * hidden));
      const double scale = 3 / std::sqrt(static_cast<double>(hidden));
      for (size_t i = 0; i < weight.size(); ++i) {
        weight[i] = static_cast<float>(scale * random.normal(i));
      }
      routers_.push_back(std::move(weight));
    }
  }

  struct Layer {
    std::vector<float> rows, probs;
    std::vector<int32_t> choices;
    std::vector<int64_t> counts;
    RoutedTokens routed(std::span<const float> source) const { return {counts, source, probs}; }
  };
  /// All layers of a micro-batch.
  std::vector<Layer> micro_batch(int64_t step, int32_t number, int64_t tokens) const {
    std::vector<Layer> layers;
    const auto hidden = static_cast<size_t>(hidden_), experts = static_cast<size_t>(shape_.experts),
               k = static_cast<size_t>(shape_.top_k), n = static_cast<size_t>(tokens);
    for (int32_t layer = 0; layer < shape_.layers; ++layer) {
      const Random random(seed_, RandomSite::noise, static_cast<uint32_t>(step * 64 + number),
                          static_cast<uint32_t>(layer));
      Layer made;
      made.rows.resize(n * hidden);
      const double kept = layer == 0 ? 0 : keep_, fresh = std::sqrt(1 - kept * kept);
      for (size_t i = 0; i < made.rows.size(); ++i) {
        const double before = layer == 0 ? 0 : layers.back().rows[i];
        made.rows[i] = static_cast<float>(kept * before + fresh * random.normal(i));
      }
      made.probs.resize(n * experts);
      made.choices.resize(n * k);
      made.counts.resize(experts);
      for (size_t t = 0; t < n; ++t) {
        std::vector<float> logits(experts), none(experts);
        soft_logits<float>(routers_[static_cast<size_t>(layer)],
                           std::span(made.rows).subspan(t * hidden, hidden), logits);
        const auto chosen = std::span(made.choices).subspan(t * k, k);
        choose_experts(logits, chosen);
        for (const int32_t e : chosen) ++made.counts[static_cast<size_t>(e)];
        soft_cross_entropy<float>(logits, none, 1.0f,
                                  std::span(made.probs).subspan(t * experts, experts));
      }
      layers.push_back(std::move(made));
    }
    return layers;
  }
  std::span<const float> router(int32_t layer) const {
    return routers_[static_cast<size_t>(layer)];
  }

 private:
  RoutedShape shape_;
  int64_t hidden_;
  double keep_;
  uint64_t seed_;
  std::vector<std::vector<float>> routers_;
};

}  // namespace hearth::test
