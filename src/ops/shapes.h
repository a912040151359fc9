// Shape checks that ops share.
#pragma once

#include "ops/view.h"

namespace hearth {

inline bool has_shape(const ConstView& v, int64_t rows, int64_t cols) {
  return v.rows == rows && v.cols == cols;
}
inline bool same_shape(const ConstView& v, const ConstView& of) {
  return has_shape(v, of.rows, of.cols);
}
inline bool empty_or_shape(const ConstView& v, int64_t rows, int64_t cols) {
  return !v || has_shape(v, rows, cols);
}

/// Whether the low-rank pair is absent or fits a map of this size.
inline bool fits(const LowRank& pair, int64_t out, int64_t in) {
  return !pair || (has_shape(pair.a, pair.rank(), in) && has_shape(pair.b, out, pair.rank()));
}
/// Whether the parts of a linear map fit each other.
inline bool fits(const LinearView& w) {
  return empty_or_shape(w.bias, 1, w.out()) && fits(w.low_rank, w.out(), w.in());
}
/// Whether each gradient is empty or has the shape of its part of a map [out, in] of this rank.
inline bool fits(const LinearGradient& g, int64_t out, int64_t in, int64_t rank) {
  return empty_or_shape(g.weight, out, in) && empty_or_shape(g.bias, 1, out) &&
         empty_or_shape(g.a, rank, in) && empty_or_shape(g.b, out, rank);
}

}  // namespace hearth
