// Tensors for tests, which own memory with canaries around and between the rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory_resource>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "ops/view.h"

namespace hearth::test {

/// A matrix with `padding` elements between rows. All other bytes are canaries, 0xff, which read as
/// NaN or -1. So reads outside show in results, and `canaries_alive` detects writes outside.
/// Elements also start as 0xff.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, int64_t rows, int64_t cols, int64_t padding = 0)
      : dtype_(dtype), rows_(rows), cols_(cols), stride_(cols + padding) {
    const size_t bytes = kGuard * 2 + static_cast<size_t>(rows_ * stride_) * size_of(dtype);
    lines_.resize((bytes + sizeof(Line) - 1) / sizeof(Line));
    std::memset(lines_.data(), 0xff, lines_.size() * sizeof(Line));
  }

  DType dtype() const { return dtype_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t size() const { return rows_ * cols_; }
  bool floating() const {
    return dtype_ == DType::f64 || dtype_ == DType::f32 || dtype_ == DType::bf16 ||
           dtype_ == DType::f16;
  }

  View view() { return {bytes() + kGuard, dtype_, rows_, cols_, stride_}; }
  ConstView view() const {
    return {const_cast<Tensor*>(this)->bytes() + kGuard, dtype_, rows_, cols_, stride_};
  }

  // Not by views: these two are most of what instrumented tests of ops do.
  double get(int64_t r, int64_t c) const {
    const auto at = static_cast<size_t>(r * stride_ + c);
    switch (dtype_) {
      case DType::f64: return elements<double>()[at];
      case DType::f32: return elements<float>()[at];
      case DType::bf16: return to_float(elements<bf16>()[at]);
      case DType::f16: return to_float(elements<f16>()[at]);
      case DType::i32: return elements<int32_t>()[at];
      default: HEARTH_CHECK(false, "test tensor: type");
    }
  }
  void set(int64_t r, int64_t c, double x) {
    const auto at = static_cast<size_t>(r * stride_ + c);
    switch (dtype_) {
      case DType::f64: elements<double>()[at] = x; return;
      case DType::f32: elements<float>()[at] = static_cast<float>(x); return;
      case DType::bf16: elements<bf16>()[at] = to_bf16(static_cast<float>(x)); return;
      case DType::f16: elements<f16>()[at] = to_f16(static_cast<float>(x)); return;
      case DType::i32: elements<int32_t>()[at] = static_cast<int32_t>(x); return;
      default: HEARTH_CHECK(false, "test tensor: type");
    }
  }
  /// Sets the elements, in row order.
  Tensor& assign(const std::vector<double>& elements) {
    HEARTH_CHECK(static_cast<int64_t>(elements.size()) == size(), "test tensor: assign");
    for (int64_t i = 0; i < size(); ++i) {
      set(i / cols_, i % cols_, elements[static_cast<size_t>(i)]);
    }
    return *this;
  }
  Tensor& fill(double x) { return assign(std::vector<double>(static_cast<size_t>(size()), x)); }
  /// Fills with uniform values in [-scale, scale), a pure function of name and index.
  Tensor& fill_random(const std::string& name, double scale = 1) {
    const Random random(name_key(name), RandomSite::init);
    for (int64_t i = 0; i < size(); ++i) {
      set(i / cols_, i % cols_, scale * (2 * random.uniform(static_cast<uint64_t>(i)) - 1));
    }
    return *this;
  }

  /// The same elements in another type and layout.
  Tensor as(DType dtype, int64_t padding) const {
    Tensor copy(dtype, rows_, cols_, padding);
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < cols_; ++c) copy.set(r, c, get(r, c));
    }
    return copy;
  }

  bool canaries_alive() const {
    const size_t row = static_cast<size_t>(cols_) * size_of(dtype_);
    const size_t stride = static_cast<size_t>(stride_) * size_of(dtype_);
    const std::byte* all = const_cast<Tensor*>(this)->bytes();
    size_t begin = 0;  // of canaries
    for (int64_t r = 0; row > 0 && r < rows_; ++r) {
      const size_t end = kGuard + static_cast<size_t>(r) * stride;
      if (!are_canaries(all + begin, end - begin)) return false;
      begin = end + row;
    }
    return are_canaries(all + begin, lines_.size() * sizeof(Line) - begin);
  }
  bool same_bits(const Tensor& other) const {
    return std::memcmp(lines_.data(), other.lines_.data(), lines_.size() * sizeof(Line)) == 0;
  }

 private:
  static bool are_canaries(const std::byte* from, size_t n) {
    return std::all_of(from, from + n, [](std::byte b) { return b == std::byte{0xff}; });
  }

  static constexpr size_t kGuard = 64;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::byte* bytes() { return reinterpret_cast<std::byte*>(lines_.data()); }
  template <class T>
  T* elements() {
    return reinterpret_cast<T*>(bytes() + kGuard);
  }
  template <class T>
  const T* elements() const {
    return const_cast<Tensor*>(this)->elements<T>();
  }

  DType dtype_ = DType::f32;
  int64_t rows_ = 0, cols_ = 0, stride_ = 0;
  // Uses the default resource. Op tests on a GPU set it to pinned memory (test_gpu.h).
  std::pmr::vector<Line> lines_;
};

/// Tensors by name.
using Tensors = std::map<std::string, Tensor>;

/// Empty if `actual` equals `expected`: integers exactly, floats within `tolerance` *
/// rms(expected). Else a line with the number of differences and the worst element.
inline std::string difference(const Tensor& actual, const Tensor& expected, double tolerance) {
  if (actual.rows() != expected.rows() || actual.cols() != expected.cols()) return "other shape";
  double squares = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double e = expected.get(i / expected.cols(), i % expected.cols());
    squares += e * e;
  }
  const double rms = std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, actual.size())));
  const double bound = expected.floating() ? tolerance * rms : 0;
  int64_t wrong = 0, worst = 0;
  double worst_error = -1;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double e = expected.get(i / expected.cols(), i % expected.cols());
    const double a = actual.get(i / expected.cols(), i % expected.cols());
    const double error = std::isnan(a - e) && !std::isnan(e) ? INFINITY : std::abs(a - e);
    if (a == e || error <= bound) continue;
    ++wrong;
    if (error > worst_error) worst = i, worst_error = error;
  }
  if (wrong == 0) return {};
  const int64_t r = worst / expected.cols(), c = worst % expected.cols();
  std::ostringstream line;
  line << wrong << " of " << expected.size() << " differ, worst at [" << r << ", " << c
       << "]: " << actual.get(r, c) << " instead of " << expected.get(r, c) << ", off by "
       << worst_error / rms << " of the rms, allowed " << tolerance;
  return line.str();
}

}  // namespace hearth::test
