// What the reference takes from Stream::scratch(), as if all of it were f64.
#include <algorithm>

#include "base/arena.h"
#include "reference/reference_op_set.h"

namespace hearth {
namespace {

size_t doubles(int64_t n) { return align_up(sizeof(double) * static_cast<size_t>(n)); }

/// Rows of dy and x where an index has them; of the expert's width h, dh, and silu(gate) * up.
ScratchNeed experts_scratch(int64_t rows, int64_t, int64_t hidden, int64_t width, int64_t rank,
                            Compute, int64_t) {
  return {2 * doubles(rows * hidden) + 3 * doubles(rows * width) +
              reference::linear_scratch(rows, 0, std::max(hidden, width), rank).shared,
          0};
}

/// The scores of a query; in the backward the sums of two rows of a head.
ScratchNeed attention_scratch(const AttentionShape& shape, int64_t, int64_t longest) {
  return {std::max(doubles(longest), 2 * doubles(shape.head_dim)), 0};
}

/// One row of logits.
ScratchNeed cross_entropy_scratch(int64_t, int64_t hidden, int64_t vocabulary, int64_t rank) {
  return {doubles(vocabulary) + reference::linear_scratch(1, vocabulary, hidden, rank).shared, 0};
}

ScratchNeed sum_squares_scratch(int64_t, int64_t) { return {}; }

/// The router's gradient of one token's probabilities.
ScratchNeed row_scratch(int64_t, int64_t width) { return {doubles(width), 0}; }

}  // namespace

/// Of a low-rank pair: both of its [rows, rank] products, the input after dropout, a row of it.
ScratchNeed reference::linear_scratch(int64_t rows, int64_t, int64_t in, int64_t rank) {
  if (rank == 0) return {};
  return {2 * doubles(rows * rank) + 2 * doubles(rows * in) + doubles(in), 0};
}

void reference::add_scratch(OpTable& ops) {
  ops.linear_scratch.add(reference::linear_scratch);
  ops.experts_scratch.add(experts_scratch);
  ops.attention_scratch.add(attention_scratch);
  ops.cross_entropy_scratch.add(cross_entropy_scratch);
  ops.sum_squares_scratch.add(sum_squares_scratch);
  ops.row_scratch.add(row_scratch);
}

}  // namespace hearth
