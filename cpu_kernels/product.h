// Matrix products on the calling worker, for linear maps, experts, the loss and attention.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "cpu_kernels/operand.h"
#include "ops/op_set.h"

namespace hearth {

/// Cuts rows or columns into equal blocks, the sides of tiles, by shape alone. Block sizes are
/// multiples of 16, except for the last block.
struct Blocks {
  static constexpr int64_t kLargest = 384;
  int64_t size = 0;  // all rows or columns
  int64_t step = 0;

  explicit Blocks(int64_t n, int64_t largest = kLargest);
  int64_t count() const { return step ? (size + step - 1) / step : 0; }
  int64_t begin(int64_t block) const { return block * step; }
  int64_t length(int64_t block) const {
    return size - begin(block) < step ? size - begin(block) : step;
  }
};

/// A range of rows or columns.
struct Range {
  int64_t begin = 0, count = 0;
};
inline Range block_of(const Blocks& blocks, int64_t i) {
  return {blocks.begin(i), blocks.length(i)};
}

/// In f32, k is cut into equal blocks of at most this size, whose sums are added in order. In bf16
/// the blocks follow from the kernel (MicroKernel::panel_steps).
constexpr int64_t kDepthBlock = 384;

/// Columns of A in a tail that a product takes; a longer one is a product of its own.
constexpr int64_t kMostTail = 64;

/// More of k for a product: columns of A and rows of B that lie elsewhere, as those of a low-rank
/// pair. No columns: nothing more.
struct Tail {
  Operand a = ConstView(), b = ConstView();
  explicit operator bool() const { return a.cols() > 0; }
};

/// C = A B, or C += A B with `accumulate`; A [m, k], B [k, n] of any stored types, C f32 with `ldc`
/// floats per row. With a tail, C = A B + A' B'. Operands may not overlap C. With `bf16` they are
/// rounded to bf16, and the sums are f32.
struct MatrixProduct {
  bool bf16 = false;
  Operand a, b;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  Tail tail = {};
  /// The B of this worker's probable next product, which is prefetched.
  const Operand* coming = nullptr;
};

/// One way to compute a product, in an ordered list: the first that is not missing runs. The bits of
/// a row of C are the same whatever other rows and columns the product has.
class ProductImplementation {
 public:
  virtual ~ProductImplementation() = default;
  virtual std::string_view name() const = 0;
  /// Why this machine cannot use this implementation; empty: it can.
  virtual std::string missing() const { return {}; }
  /// Whether `run` adds the tail; else the tail is a product of its own.
  virtual bool takes_tail() const { return false; }
  /// m and k are not 0.
  virtual void run(Scratch& scratch, const MatrixProduct& product) const = 0;
  /// An upper bound of the worker scratch that `run` takes.
  virtual size_t scratch_bytes() const = 0;
};

/// All implementations for bf16 or f32 operands; the preferred implementation comes first.
std::span<const ProductImplementation* const> product_implementations(bool bf16);

/// Runs the first implementation that is not missing. Any sizes are allowed; packing pays off if m
/// and n are about 256. The order of the sum over k depends only on k, so callers can cut a product
/// freely by rows and columns. The first product logs why implementations are missing.
void multiply(Scratch& scratch, const MatrixProduct& product);
inline void multiply(Scratch& scratch, bool bf16, const Operand& a, const Operand& b, float* c,
                     int64_t ldc, bool accumulate) {
  multiply(scratch, {bf16, a, b, c, ldc, accumulate});
}

/// An upper bound of the worker scratch that `multiply` takes, with any implementation of ours.
size_t multiply_scratch();

/// Whether this machine multiplies bf16 in hardware, or what is assumed (OpSet::assume_bf16).
/// `multiply` is not changed by what is assumed.
bool has_bf16_products();
void assume_bf16_products(std::optional<bool> there);

/// The right operand of small products, small enough to stay in the caches: f32 that is read where it
/// lies, or pairs of bf16 that are packed once for several products. Does not own its memory.
struct SmallRight {
  const float* data = nullptr;
  int64_t k = 0, n = 0;
  int64_t ld = 0, step = 0;  // floats between steps, and between strips
  bool pairs = false;
};
/// B is [k, n], `ld` floats per row.
SmallRight right_in_place(const float* b, int64_t k, int64_t n, int64_t ld);
/// Only where `has_small_pairs(b.rows())`. `packed` has small_pairs_floats(k, n).
SmallRight right_in_pairs(const Operand& b, float* packed);
/// Whether products of pairs are there, for that many elements of k.
bool has_small_pairs(int64_t k);
constexpr int64_t small_pairs_floats(int64_t k, int64_t n) {
  return (k + 31) / 32 * 16 * ((n + 31) / 32 * 32);
}

/// C = A B, or C += A B; A is rounded to bf16 if B is in pairs. `left` has kLeftFloats.
constexpr int64_t kLeftFloats = 4 * 16 * (kDepthBlock + 1);  // four strips of A in f32
void multiply_small(const Operand& a, const SmallRight& b, float* c, int64_t ldc, bool accumulate,
                    float* left);

}  // namespace hearth
