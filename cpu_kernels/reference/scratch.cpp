// What the reference takes from Stream::scratch(), as if all of it were f64.
#include <algorithm>

#include "base/arena.h"
#include "reference/reference_op_set.h"

namespace hearth {
namespace {

size_t doubles(int64_t n) { return align_up(sizeof(double) * static_cast<size_t>(n)); }

}  // namespace

/// Of a low-rank pair: both of its [rows, rank] products, the input after dropout, a row of it.
ScratchNeed ReferenceOps::linear_scratch(int64_t rows, int64_t, int64_t in, int64_t rank) const {
  if (rank == 0) return {};
  return {2 * doubles(rows * rank) + 2 * doubles(rows * in) + doubles(in), 0};
}

/// Two rows of the expert's width a token: dh and h.
ScratchNeed ReferenceOps::experts_scratch(int64_t rows, int64_t, int64_t hidden, int64_t width,
                                          int64_t rank) const {
  return {2 * doubles(rows * width) + linear_scratch(rows, 0, std::max(hidden, width), rank).shared,
          0};
}

/// The scores of a query; in the backward the sums of two rows of a head.
ScratchNeed ReferenceOps::attention_scratch(const AttentionShape& shape, int64_t,
                                            int64_t longest) const {
  return {std::max(doubles(longest), 2 * doubles(shape.head_dim)), 0};
}

/// One row of logits.
ScratchNeed ReferenceOps::cross_entropy_scratch(int64_t, int64_t hidden, int64_t vocabulary,
                                                int64_t rank) const {
  return {doubles(vocabulary) + linear_scratch(1, vocabulary, hidden, rank).shared, 0};
}

ScratchNeed ReferenceOps::sum_squares_scratch(int64_t, int64_t) const { return {}; }

/// The router's gradient of one token's probabilities.
ScratchNeed ReferenceOps::row_scratch(int64_t, int64_t width) const { return {doubles(width), 0}; }

}  // namespace hearth
