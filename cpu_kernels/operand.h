// An operand of a product.
#pragma once

#include <utility>

#include "ops/view.h"

namespace hearth {

/// A matrix in memory, or its transpose.
struct Operand {
  ConstView memory;  // f32, bf16 or f16
  bool transposed = false;

  Operand(ConstView m, bool t = false) : memory(m), transposed(t) {}  // NOLINT: implicit
  int64_t rows() const { return transposed ? memory.cols : memory.rows; }
  int64_t cols() const { return transposed ? memory.rows : memory.cols; }
  /// Rows [r, r + m) and columns [c, c + n).
  Operand block(int64_t r, int64_t m, int64_t c, int64_t n) const {
    if (transposed) {
      std::swap(r, c);
      std::swap(m, n);
    }
    const auto* from = static_cast<const std::byte*>(memory.data) +
                       static_cast<size_t>(r * memory.stride + c) * size_of(memory.dtype);
    return {ConstView(from, memory.dtype, m, n, memory.stride), transposed};
  }
};

}  // namespace hearth
