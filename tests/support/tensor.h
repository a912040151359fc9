// Tensors for tests, which own memory with canaries around and between the rows.
#pragma once

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

  double get(int64_t r, int64_t c) const {
    switch (dtype_) {
      case DType::f64: return view().row<double>(r)[c];
      case DType::f32: return view().row<float>(r)[c];
      case DType::bf16: return to_float(view().row<bf16>(r)[c]);
      case DType::f16: return to_float(view().row<f16>(r)[c]);
      case DType::i32: return view().row<int32_t>(r)[c];
      default: HEARTH_CHECK(false, "test tensor: type");
    }
  }
  void set(int64_t r, int64_t c, double x) {
    switch (dtype_) {
      case DType::f64: view().row<double>(r)[c] = x; return;
      case DType::f32: view().row<float>(r)[c] = static_cast<float>(x); return;
      case DType::bf16: view().row<bf16>(r)[c] = to_bf16(static_cast<float>(x)); return;
      case DType::f16: view().row<f16>(r)[c] = to_f16(static_cast<float>(x)); return;
      case DType::i32: view().row<int32_t>(r)[c] = static_cast<int32_t>(x); return;
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
    const size_t end = static_cast<size_t>(rows_) * stride;
    const std::byte* all = const_cast<Tensor*>(this)->bytes();
    for (size_t i = 0; i < lines_.size() * sizeof(Line); ++i) {
      const bool element = i >= kGuard && i - kGuard < end && (i - kGuard) % stride < row;
      if (!element && all[i] != std::byte{0xff}) return false;
    }
    return true;
  }
  bool same_bits(const Tensor& other) const {
    return std::memcmp(lines_.data(), other.lines_.data(), lines_.size() * sizeof(Line)) == 0;
  }

 private:
  static constexpr size_t kGuard = 64;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::byte* bytes() { return reinterpret_cast<std::byte*>(lines_.data()); }

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
