#include "predictor/training_rows.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

std::vector<int32_t> spread_rows(int64_t tokens, int64_t count) {
  const int64_t n = std::min(tokens, count);
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < n; ++i)
    rows.push_back(static_cast<int32_t>((2 * i + 1) * tokens / (2 * n)));
  return rows;
}

TrainingRows::TrainingRows(const RoutedShape& shape, int64_t hidden, int64_t rows)
    : experts_(shape.experts), hidden_(hidden), most_(rows) {
  HEARTH_CHECK(rows > 0 && hidden > 0, "training rows: none");
  const auto all = static_cast<size_t>(shape.layers * rows);
  rows_.resize(all * static_cast<size_t>(hidden));
  probs_.resize(all * static_cast<size_t>(experts_));
  filled_.resize(all);
}

std::pair<int64_t, int64_t> TrainingRows::share_of(const RoutedBatch& batch) const {
  HEARTH_CHECK(batch.micro_batch >= 0 && batch.micro_batch < batch.micro_batches,
               "training rows: no such micro-batch");
  const int64_t begin = most_ * batch.micro_batch / batch.micro_batches;
  const int64_t end = most_ * (batch.micro_batch + 1) / batch.micro_batches;
  return {most_ * batch.layer + begin, end - begin};
}

void TrainingRows::keep(const RoutedBatch& batch, std::span<const float> source,
                        std::span<const float> probs) {
  keep_source(batch, source);
  keep_probs(batch, probs);
}

void TrainingRows::keep_source(const RoutedBatch& batch, std::span<const float> source) {
  HEARTH_CHECK(std::ssize(source) == batch.tokens * hidden_, "training rows: other shapes");
  auto [slot, count] = share_of(batch);
  for (const int32_t token : spread_rows(batch.tokens, count)) {
    std::copy_n(source.data() + token * hidden_, hidden_, rows_.data() + slot++ * hidden_);
  }
}

void TrainingRows::keep_probs(const RoutedBatch& batch, std::span<const float> probs) {
  HEARTH_CHECK(std::ssize(probs) == batch.tokens * experts_, "training rows: other shapes");
  auto [slot, count] = share_of(batch);
  for (const int32_t token : spread_rows(batch.tokens, count)) {
    std::copy_n(probs.data() + token * experts_, experts_, probs_.data() + slot * experts_);
    filled_[static_cast<size_t>(slot++)] = 1;
  }
}

TrainingRows::Kept TrainingRows::take(int32_t layer) {
  const int64_t first = most_ * layer;
  int64_t to = first;
  for (int64_t slot = first; slot < first + most_; ++slot) {
    uint8_t& is_filled = filled_[static_cast<size_t>(slot)];
    if (is_filled == 0) continue;
    is_filled = 0;
    if (to != slot) {
      std::copy_n(rows_.data() + slot * hidden_, hidden_, rows_.data() + to * hidden_);
      std::copy_n(probs_.data() + slot * experts_, experts_, probs_.data() + to * experts_);
    }
    ++to;
  }
  const auto count = static_cast<size_t>(to - first);
  return {std::span(rows_).subspan(static_cast<size_t>(first * hidden_),
                                   count * static_cast<size_t>(hidden_)),
          std::span<const float>(probs_).subspan(static_cast<size_t>(first * experts_),
                                                 count * static_cast<size_t>(experts_)),
          to - first};
}

}  // namespace hearth
