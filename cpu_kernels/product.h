// Matrix products on the calling worker: the parts of which linear maps, experts, the loss and
// attention are made.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "cpu_kernels/operand.h"

namespace hearth {

/// Rows or columns cut into equal blocks, multiples of 16 but for the last: the sides of a tile. By
/// shape alone.
struct Blocks {
  static constexpr int64_t kLargest = 256;
  int64_t size = 0;  // all there are to cut
  int64_t step = 0;

  explicit Blocks(int64_t n, int64_t largest = kLargest);
  int64_t count() const { return step ? (size + step - 1) / step : 0; }
  int64_t begin(int64_t block) const { return block * step; }
  int64_t length(int64_t block) const {
    return size - begin(block) < step ? size - begin(block) : step;
  }
};

/// k is cut into equal blocks of at most this many, whose sums are added in order.
constexpr int64_t kDepthBlock = 384;

/// C = A B, or C += A B with `accumulate`; A [m, k], B [k, n] of any stored types, C f32 with `ldc`
/// floats per row. A and B may not overlap C. With `bf16` both operands are rounded to bf16 and the sums
/// are f32.
struct MatrixProduct {
  bool bf16 = false;
  Operand a, b;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  /// The B that this worker probably multiplies by next. It is fetched meanwhile.
  const Operand* coming = nullptr;
};

/// One way to compute a product, in an ordered list (ops/implementations.h).
class ProductImplementation {
 public:
  virtual ~ProductImplementation() = default;
  virtual std::string_view name() const = 0;
  /// Why this machine cannot use the implementation; empty: it can.
  virtual std::string missing() const { return {}; }
  /// Why it does not take this product; empty: it takes it.
  virtual std::string_view declines(const MatrixProduct&) const { return {}; }
  /// m and k are not 0.
  virtual void run(Scratch& scratch, const MatrixProduct& product) const = 0;
  /// An upper bound of what `run` takes from the worker's scratch.
  virtual size_t scratch_bytes() const = 0;
};

/// All implementations for bf16 or for f32 operands, the preferred one first.
std::span<const ProductImplementation* const> product_implementations(bool bf16);

/// Runs the first implementation that is not missing and takes the product. Sizes are free; packing
/// pays if m and n are about 256. How the sum over k is formed depends on k alone, so a product may be
/// cut by rows and columns at will. The first product logs why an implementation is missing.
void multiply(Scratch& scratch, bool bf16, const Operand& a, const Operand& b, float* c,
              int64_t ldc, bool accumulate, const Operand* coming = nullptr);

/// An upper bound of what `multiply` takes from the worker's scratch.
size_t multiply_scratch();

/// `multiply` in f32 with B f32 in place ([k, n], `ldb` floats a row). `left` holds kLeftFloats.
constexpr int64_t kLeftFloats = 4 * 16 * (kDepthBlock + 1);  // four strips of A
void multiply_in_place(const Operand& a, bool round_left, const float* b, int64_t ldb, int64_t n,
                       float* c, int64_t ldc, bool accumulate, float* left);

}  // namespace hearth
