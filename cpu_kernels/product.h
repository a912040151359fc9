// Matrix products on the calling worker: the parts of which linear maps, experts, the loss and
// attention are made.
#pragma once

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
/// floats a row. A and B may not overlap C. Sizes are free; packing is paid for where m and n are
/// some 256. With `bf16` both operands are rounded to bf16 and the sums are f32.
/// How the sum over k is formed depends on k alone, so a product may be cut by rows and columns as
/// one likes. `coming` is the B that this worker is likely to multiply by next: it is brought near
/// meanwhile.
void multiply(Scratch& scratch, bool bf16, const Operand& a, const Operand& b, float* c,
              int64_t ldc, bool accumulate, const Operand* coming = nullptr);

/// What `multiply` takes from the worker's scratch, at most.
size_t multiply_scratch();

/// The same in f32 with B f32 in place ([k, n], `ldb` floats a row). `left` holds kLeftFloats.
constexpr int64_t kLeftFloats = 4 * 16 * (kDepthBlock + 1);  // four strips of A
void multiply_in_place(const Operand& a, bool round_left, const float* b, int64_t ldb, int64_t n,
                       float* c, int64_t ldc, bool accumulate, float* left);

}  // namespace hearth
