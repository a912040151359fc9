// Elementwise work on views of one shape. Contiguous views count as one long row.
#pragma once

#include <initializer_list>

#include "cpu_kernels/tiles.h"

namespace hearth {

/// `count` elements from (row, col) on. If all views are contiguous, they may cross row ends.
struct Elements {
  int64_t row, col, count;
};

constexpr int64_t kElementBlock = 16384;

/// Runs f(Elements) over all elements of views of equal shape.
template <class F>
void for_elements(HostStream& stream, std::initializer_list<ConstView> views, const F& f) {
  const ConstView& first = *views.begin();
  int64_t rows = first.rows, cols = first.cols;
  const bool flat =
      std::all_of(views.begin(), views.end(), [](const ConstView& v) { return v.contiguous(); });
  if (flat) {
    cols *= rows;
    rows = 1;
  }
  const int64_t in_row = (cols + kElementBlock - 1) / kElementBlock;
  stream.pool().run(rows * in_row, [&](int64_t tile, int) {
    const int64_t row = tile / in_row, col = tile % in_row * kElementBlock;
    f(Elements{row, col, std::min(kElementBlock, cols - col)});
  });
}

}  // namespace hearth
