// A range of the width of experts: rows of gate and up, columns of down.
//
//   gate, up [I, H]   rows [begin, begin + count)      B [I, r] the same rows, A [r, H] whole
//   down     [H, I]   columns of the same numbers      A [r, I] the same columns, B [H, r] whole
//
// SwiGLU is elementwise over the width, so each range can be computed by itself, and at another place.
// y, dx and the gradients of combine weights sum over the width: those of ranges that cover it add up to
// the whole, rounded otherwise. The gradients of what is cut belong to one range each. Those of A of gate
// and up, and of B of down, which all ranges read, add up as well.
#pragma once

#include "ops/view.h"

namespace hearth {

struct WidthRange {
  int64_t begin = 0;  // a multiple of four if maps have dropout
  int64_t count = 0;
};

/// V: ConstView or View; an empty view stays empty.
template <class V>
V rows_in(const V& v, WidthRange range) {
  return v ? v.slice(range.begin, range.count) : v;
}
template <class V>
V columns_in(const V& v, WidthRange range) {
  return v ? v.columns(range.begin, range.count) : v;
}

/// The maps of the range. Maps of experts have no bias.
inline ExpertView range_of(const ExpertView& expert, WidthRange range) {
  ExpertView part = expert;
  for (LinearView* const map : {&part.gate, &part.up}) {
    map->weight = rows_in(map->weight, range);
    map->low_rank.b = rows_in(map->low_rank.b, range);
  }
  part.down.weight = columns_in(expert.down.weight, range);
  part.down.low_rank.a = columns_in(expert.down.low_rank.a, range);
  part.down.low_rank.dropout.first_column += range.begin;
  return part;
}

/// Where the gradients of these maps go.
inline ExpertGradient range_of(const ExpertGradient& gradient, WidthRange range) {
  ExpertGradient part = gradient;
  for (LinearGradient* const map : {&part.gate, &part.up}) {
    map->weight = rows_in(map->weight, range);
    map->b = rows_in(map->b, range);
  }
  part.down.weight = columns_in(gradient.down.weight, range);
  part.down.a = columns_in(gradient.down.a, range);
  return part;
}

}  // namespace hearth
