// Views: typed pointers with a shape. They own nothing and are passed by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/dtype.h"
#include "base/error.h"

namespace hearth {

/// A read-only matrix [rows, cols], row-major; `stride` elements from one row to the next. A vector
/// of n is [1, n]. Tensors [T, heads, d] are passed as [T, heads * d].
struct ConstView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  ConstView() = default;
  ConstView(const void* p, DType type, int64_t r, int64_t c) : ConstView(p, type, r, c, c) {}
  ConstView(const void* p, DType type, int64_t r, int64_t c, int64_t s)
      : data(p), dtype(type), rows(r), cols(c), stride(s) {}

  explicit operator bool() const { return data != nullptr; }
  bool contiguous() const { return stride == cols || rows <= 1; }
  int64_t size() const { return rows * cols; }
  size_t bytes() const { return static_cast<size_t>(size()) * size_of(dtype); }

  template <class T>
  const T* as() const {
    HEARTH_CHECK(dtype == dtype_of<T>(), "view: element type differs");
    return static_cast<const T*>(data);
  }
  template <class T>
  const T* row(int64_t r) const {
    return as<T>() + r * stride;
  }
  /// Rows [begin, begin + n).
  ConstView slice(int64_t begin, int64_t n) const {
    return {
        static_cast<const std::byte*>(data) + static_cast<size_t>(begin * stride) * size_of(dtype),
        dtype, n, cols, stride};
  }
  /// Columns [begin, begin + n).
  ConstView columns(int64_t begin, int64_t n) const {
    return {static_cast<const std::byte*>(data) + static_cast<size_t>(begin) * size_of(dtype),
            dtype, rows, n, stride};
  }
  /// The same contiguous elements as [rows, cols].
  ConstView reshape(int64_t r, int64_t c) const {
    HEARTH_CHECK(contiguous() && r * c == size(), "view: reshape of other size");
    return {data, dtype, r, c};
  }
};

/// A matrix that may be written.
struct View : ConstView {
  View() = default;
  View(void* p, DType type, int64_t r, int64_t c) : ConstView(p, type, r, c) {}
  View(void* p, DType type, int64_t r, int64_t c, int64_t s) : ConstView(p, type, r, c, s) {}

  template <class T>
  T* as() const {
    return const_cast<T*>(ConstView::as<T>());
  }
  template <class T>
  T* row(int64_t r) const {
    return const_cast<T*>(ConstView::row<T>(r));
  }
  void* raw() const { return const_cast<void*>(data); }
  View slice(int64_t begin, int64_t n) const {
    const ConstView v = ConstView::slice(begin, n);
    return {const_cast<void*>(v.data), v.dtype, v.rows, v.cols, v.stride};
  }
  View columns(int64_t begin, int64_t n) const {
    const ConstView v = ConstView::columns(begin, n);
    return {const_cast<void*>(v.data), v.dtype, v.rows, v.cols, v.stride};
  }
  View reshape(int64_t r, int64_t c) const {
    const ConstView v = ConstView::reshape(r, c);
    return {const_cast<void*>(v.data), v.dtype, v.rows, v.cols};
  }
};

/// How the products of a weight are computed: f32, bf16 operands with f32 accumulation, or f64
/// (reference only).
enum class Compute : uint8_t { f32, bf16, f64 };

/// Dropout of an input [M, N]: an element becomes zero with probability `rate`, else is divided by
/// 1 - rate. The choice is a pure function of (key, id of the row, column), so the backward drops
/// the same elements (ops/dropout.h).
///
/// The rows of experts may be of several micro-batches (ExpertRows), each with a key of its own. Their
/// ids must say which row it is within its micro-batch whatever its place in the call: the number of
/// the routed choice, token * k + j (RoutingView::source).
struct Dropout {
  double rate = 0;
  uint64_t key = 0;
  ConstView ids;          // i32 [1, rows of the whole input]; empty: the id is the row's number
  int64_t first_row = 0;  // of this part, in the whole input
  std::span<const uint64_t> segment_keys = {};  // of each segment; empty: `key` for all
  int64_t first_column = 0;  // of this part, in the whole input; a multiple of four

  explicit operator bool() const { return rate > 0; }
  int64_t id(int64_t row) const {
    return ids ? ids.as<int32_t>()[first_row + row] : first_row + row;
  }
};

/// A low-rank addition to a linear map (LoRA, arXiv 2106.09685): scale * (drop(x) A^T) B^T with A
/// [rank, in] and B [out, rank]. The product B A is never formed.
struct LowRank {
  ConstView a, b;
  double scale = 0;
  Dropout dropout;

  explicit operator bool() const { return static_cast<bool>(a); }
  int64_t rank() const { return a.rows; }
  /// The pair for the input's rows from `row` on, of a segment.
  LowRank from_row(int64_t row, int64_t segment = 0) const {
    LowRank rest = *this;
    rest.dropout.first_row += row;
    if (!dropout.segment_keys.empty()) {
      rest.dropout.key = dropout.segment_keys[static_cast<size_t>(segment)];
    }
    return rest;
  }
};

/// A linear map y = x W^T + b + low_rank(x). W is [out, in] in any stored type. b [1, out] and the
/// low-rank pair may be absent.
struct LinearView {
  ConstView weight;
  ConstView bias;
  Compute compute = Compute::f32;
  LowRank low_rank = {};
  int64_t out() const { return weight.rows; }
  int64_t in() const { return weight.cols; }
};

/// Where ops add the gradients of a linear map: f32, with the shapes of its parts. Empty for parts
/// that are absent or not trained.
struct LinearGradient {
  View weight = {}, bias = {};
  View a = {}, b = {};  // of the low-rank pair
  explicit operator bool() const { return weight || bias || a || b; }
};

/// One expert's SwiGLU maps: gate and up [width, hidden], down [hidden, width]. Each expert has its
/// own pointers, so ops can also use a cached or received copy.
struct ExpertView {
  LinearView gate, up, down;
};

struct ExpertGradient {
  LinearGradient gate, up, down;
};

}  // namespace hearth
