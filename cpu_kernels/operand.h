// An operand of a product.
#pragma once

#include <utility>

#include "ops/view.h"

namespace hearth {

/// Which row of a matrix stands in row r: row source[r] / choices, or without a source, r itself.
struct RowIndex {
  const int32_t* source = nullptr;
  int64_t choices = 1;

  explicit operator bool() const { return source != nullptr; }
  int64_t operator()(int64_t r) const { return source != nullptr ? source[r] / choices : r; }
};

/// A matrix in memory, or its transpose. The rows of the memory may be read through an index.
struct Operand {
  ConstView memory;  // f32, bf16 or f16; with an index, `rows` of it are read
  bool transposed = false;
  RowIndex index = {};

  Operand(ConstView m, bool t = false) : memory(m), transposed(t) {}  // NOLINT: implicit
  /// Of the index's rows.
  Operand(ConstView m, RowIndex by, int64_t rows) : memory(m), index(by) {
    if (by) memory.rows = rows;
  }
  int64_t rows() const { return transposed ? memory.cols : memory.rows; }
  int64_t cols() const { return transposed ? memory.rows : memory.cols; }
  /// Row r of the memory.
  template <class T>
  const T* row(int64_t r) const {
    return memory.row<T>(index(r));
  }
  /// Rows [r, r + m) and columns [c, c + n).
  Operand block(int64_t r, int64_t m, int64_t c, int64_t n) const {
    if (transposed) {
      std::swap(r, c);
      std::swap(m, n);
    }
    Operand part = *this;
    if (index) part.index.source += r;
    const auto* from =
        static_cast<const std::byte*>(memory.data) +
        static_cast<size_t>((index ? 0 : r) * memory.stride + c) * size_of(memory.dtype);
    part.memory = ConstView(from, memory.dtype, m, n, memory.stride);
    return part;
  }
  Operand transpose() const {
    Operand other = *this;
    other.transposed = !transposed;
    return other;
  }
};

/// The rows of an operand's memory, for loops that pack them: copies of what finds them, which stay in
/// registers.
template <class T>
struct OperandRows {
  const T* data;
  int64_t stride;
  RowIndex index;

  explicit OperandRows(const Operand& x)
      : data(static_cast<const T*>(x.memory.data)), stride(x.memory.stride), index(x.index) {}
  const T* operator[](int64_t r) const { return data + index(r) * stride; }
};

}  // namespace hearth
