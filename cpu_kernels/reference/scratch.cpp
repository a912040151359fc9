// What the reference takes from Stream::scratch(), as if all of it were f64.
#include <algorithm>

#include "base/arena.h"
#include "reference/reference_op_set.h"

namespace hearth {
namespace {

size_t doubles(int64_t n) { return align_up(sizeof(double) * static_cast<size_t>(n)); }

}  // namespace

ScratchNeed ReferenceOps::linear_scratch(int64_t, int64_t, int64_t) const { return {}; }

/// Two rows of the expert's width a token: dh and h.
ScratchNeed ReferenceOps::experts_scratch(int64_t rows, int64_t, int64_t, int64_t width) const {
  return {2 * doubles(rows * width), 0};
}

/// The scores of a query; in the backward the sums of two rows of a head.
ScratchNeed ReferenceOps::attention_scratch(const AttentionShape& shape, int64_t,
                                            int64_t longest) const {
  return {std::max(doubles(longest), 2 * doubles(shape.head_dim)), 0};
}

/// One row of logits.
ScratchNeed ReferenceOps::cross_entropy_scratch(int64_t, int64_t, int64_t vocabulary) const {
  return {doubles(vocabulary), 0};
}

ScratchNeed ReferenceOps::sum_squares_scratch(int64_t, int64_t) const { return {}; }

/// The router's gradient of one token's probabilities.
ScratchNeed ReferenceOps::row_scratch(int64_t, int64_t width) const { return {doubles(width), 0}; }

}  // namespace hearth
