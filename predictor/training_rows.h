// The rows that an online predictor learns from in a step: a few tokens of each micro-batch.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "predictor/predictor.h"

namespace hearth {

/// `count` of `tokens` tokens, evenly spaced, rising; all if there are no more than that.
std::vector<int32_t> spread_rows(int64_t tokens, int64_t count);

/// Keeps up to `rows` pairs of a row [H] and a router's probabilities [E] for each layer and step.
/// Every micro-batch has its share of them at a place of its own, so the order in which micro-batches
/// come does not matter, and they may come at the same time.
class TrainingRows {
 public:
  TrainingRows(const RoutedShape& shape, int64_t hidden, int64_t rows);

  /// `source`: [T, H]; `probs`: [T, E].
  void keep(const RoutedBatch& batch, std::span<const float> source, std::span<const float> probs);
  /// The two halves of `keep`, the source first, for rows that come before the router's. Both with
  /// equal batches.
  void keep_source(const RoutedBatch& batch, std::span<const float> source);
  void keep_probs(const RoutedBatch& batch, std::span<const float> probs);
  /// The rows that were kept for a layer, by micro-batch, without gaps; then nothing is kept.
  /// The views are valid until the next `keep`.
  struct Kept {
    std::span<float> rows;         // [n, H]
    std::span<const float> probs;  // [n, E]
    int64_t count = 0;
  };
  Kept take(int32_t layer);

  static uint64_t bytes(const RoutedShape& shape, int64_t hidden, int64_t rows) {
    return static_cast<uint64_t>(shape.layers * rows) *
           (sizeof(float) * static_cast<uint64_t>(hidden + shape.experts) + 1);
  }

 private:
  /// The first slot of a batch's share, and how many it has.
  std::pair<int64_t, int64_t> share_of(const RoutedBatch& batch) const;

  int64_t experts_, hidden_, most_;
  std::vector<float> rows_, probs_;  // [layers, most, H] and [layers, most, E]
  std::vector<uint8_t> filled_;      // [layers, most]
};

}  // namespace hearth
