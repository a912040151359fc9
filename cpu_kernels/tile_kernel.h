// The innermost parts of bf16 products on AMX tiles: pack operands, and multiply 32 rows by 32
// columns.
//
//   A, strips of 32 rows                      B, strips of 32 columns
//     16 steps of row 0:  a00a01 a02a03 ..      step 0:  b00b10 b01b11 ..
//     16 steps of row 1:  a10a11 a12a13 ..      step 1:  b20b30 b21b31 ..
//     .. row 31; then the next 16 steps         ..
//
// A pair is two bf16 that are neighbours along k, in the bits of a float. A step is a pair of k,
// and steps are filled up with zeros to a multiple of 16. A tile of A is 16 rows of 16 pairs, a
// tile of B is 16 steps of 16 columns. One instruction adds their product, over 32 elements of k,
// to a tile of 16 x 16 sums in f32. Four tiles hold sums, two hold A and two hold B. Both strips
// are read in the order in which they lie, so that the processor fetches them ahead.
//
// Every element is a sum over k from zero, 32 elements at a time. Only the sum is added to C. So
// its bits do not depend on the rows and columns beside it.
//
// On a core of a Xeon of the Sapphire Rapids class, whose tiles alone reach 3.4 TFLOP/s, `multiply`
// reaches 0.85 of that with 128 steps and all strips in the first cache, 0.75 with C in the second,
// and 0.62 with 256 steps, whose strips do not fit the first.
#pragma once

#include "base/dtype.h"
#include "cpu_kernels/operand.h"

namespace hearth::tiles {

constexpr int64_t kSide = 16;   // rows of a tile, and pairs or floats of a row
constexpr int64_t kStrip = 32;  // rows of a strip of A, columns of a strip of B
constexpr int64_t kDepth = 32;  // elements of k in an instruction

/// Steps of k elements.
constexpr int64_t steps(int64_t k) { return (k + kDepth - 1) / kDepth * kSide; }

/// Memory that is brought to the caches while strips are multiplied, line by line. It is never
/// read, so it may be gone. Nothing by default.
class Coming {
 public:
  Coming() = default;
  /// A matrix that is read next; nothing if its rows are apart.
  explicit Coming(const Operand& x)
      : Coming(x.memory.data, x.index ? 0 : x.memory.rows,
               x.memory.cols * static_cast<int64_t>(size_of(x.memory.dtype)),
               x.memory.stride * static_cast<int64_t>(size_of(x.memory.dtype))) {}
  /// `rows` rows of `bytes` bytes, `stride` bytes apart.
  Coming(const void* at, int64_t rows, int64_t bytes, int64_t stride)
      : at_(static_cast<const std::byte*>(at)), rows_(rows), bytes_(bytes), stride_(stride) {}

  template <int kWrite>
  void fetch(int lines) {
    for (int i = 0; i < lines && rows_ > 0; ++i) {
      __builtin_prefetch(at_ + column_, kWrite, kWrite ? 3 : 2);
      column_ += 64;
      if (column_ < bytes_) continue;
      column_ = 0;
      at_ += stride_;
      --rows_;
    }
  }

 private:
  const std::byte* at_ = nullptr;
  int64_t rows_ = 0, bytes_ = 0, stride_ = 0, column_ = 0;
};

/// Lends this thread the tiles until the end of the scope. Not while others hold them here.
class Scope {
 public:
  Scope();
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
};

/// Packs A [m, k], or B [k, n], rounded to bf16, into strips of steps(k) * kStrip pairs that are
/// `strip` pairs apart. Rows of A and columns of B past the last are undefined.
void pack_left(const Operand& a, int64_t strip, float* target);
void pack_right(const Operand& b, int64_t strip, float* target);
/// c [m, n] (+)= sums + the product of two strips, 1 <= m, n <= kStrip. `sums` is [m, kStrip] or
/// null, and may be c. Fetches some of what is read, and written, next.
void multiply(int64_t m, int64_t n, int64_t steps, const float* a, const float* b,
              const float* sums, float* c, int64_t ldc, bool add, Coming& read, Coming& written);

}  // namespace hearth::tiles
