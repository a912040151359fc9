// The sums of some rows and columns of C are collected in the second cache, 256 elements of k at a
// time: A and B are packed, each row of their memory in one pass, and every strip of A is
// multiplied by every strip of B. C gets its sums with the last block of k. How k is cut depends on
// k alone.
#include "cpu_kernels/tile_product.h"

#include <algorithm>

#include "cpu_kernels/tile_kernel.h"

namespace hearth {
namespace {

using tiles::kStrip;

constexpr int64_t kMostRows = 384, kMostColumns = 384;  // of C at a time
constexpr int64_t kBlock = 256;                         // elements of k at a time
constexpr int64_t kSteps = (kBlock + kMostTail) / 2;
constexpr int64_t kLeft = kSteps * kStrip;            // pairs of a strip of A
constexpr int64_t kRight = kSteps * kStrip + kStrip;  // of B; its strips share no cache sets
constexpr int64_t kSums = kMostRows * kStrip;         // of a strip of columns

static_assert(tiles::steps(kTileSmallDepth) * kStrip <= kLeftFloats);

Range part(int64_t begin, int64_t most, int64_t end) {
  return {begin, std::min(most, end - begin)};
}

}  // namespace

void tile_multiply(Scratch& scratch, const MatrixProduct& p) {
  const tiles::Scope scope;
  Scratch::Frame frame(scratch);
  float* const left = scratch.take<float>(kMostRows / kStrip * kLeft);
  float* const right = scratch.take<float>(kMostColumns / kStrip * kRight);
  float* const sums = scratch.take<float>(kMostColumns / kStrip * kSums);
  const int64_t m = p.a.rows(), n = p.b.cols(), k = p.a.cols();
  // Rows and columns of C: adds block `of` of k, and the tail after the last.
  const auto add_block = [&](Range rows, Range cols, Range of, tiles::Coming& written) {
    const int64_t own = tiles::steps(of.count);
    int64_t steps = own;
    tiles::pack_left(p.a.block(rows.begin, rows.count, of.begin, of.count), kLeft, left);
    tiles::pack_right(p.b.block(of.begin, of.count, cols.begin, cols.count), kRight, right);
    const bool last = of.begin + of.count == k;
    if (const int64_t tail = last ? p.tail.a.cols() : 0; tail > 0) {
      tiles::pack_left(p.tail.a.block(rows.begin, rows.count, 0, tail), kLeft, left + own * kStrip);
      tiles::pack_right(p.tail.b.block(0, tail, cols.begin, cols.count), kRight,
                        right + own * kStrip);
      steps += tiles::steps(tail);
    }
    tiles::Coming read;
    if (!last) {
      const Range next = part(of.begin + of.count, kBlock, k);
      read = tiles::Coming(p.b.block(next.begin, next.count, cols.begin, cols.count));
    }
    for (int64_t i = 0; i < rows.count; i += kStrip) {
      for (int64_t j = 0; j < cols.count; j += kStrip) {
        float* const sum = sums + j / kStrip * kSums + i * kStrip;
        float* const to = last ? p.c + (rows.begin + i) * p.ldc + cols.begin + j : sum;
        tiles::multiply(std::min(kStrip, rows.count - i), std::min(kStrip, cols.count - j), steps,
                        left + i / kStrip * kLeft, right + j / kStrip * kRight,
                        of.begin > 0 ? sum : nullptr, to, last ? p.ldc : kStrip,
                        last && p.accumulate, read, written);
      }
    }
  };
  const Blocks by_rows(m, kMostRows);
  for (int64_t r = 0; r < m; r += by_rows.step) {
    for (int64_t c = 0; c < n; c += kMostColumns) {
      const Range rows = part(r, by_rows.step, m), cols = part(c, kMostColumns, n);
      float* const to = p.c + r * p.ldc + c;
      tiles::Coming written(to, rows.count, 4 * cols.count, 4 * p.ldc);
      for (int64_t at = 0; at < k; at += kBlock) {
        add_block(rows, cols, part(at, kBlock, k), written);
      }
    }
  }
}

SmallRight tile_right(const Operand& b, float* packed) {
  const int64_t strip = tiles::steps(b.rows()) * kStrip;
  tiles::pack_right(b, strip, packed);
  return {packed, b.rows(), b.cols(), kStrip, strip, true};
}

void tile_multiply_small(const Operand& a, const SmallRight& b, float* c, int64_t ldc,
                         bool accumulate, float* left) {
  const tiles::Scope scope;
  tiles::Coming none;
  const int64_t m = a.rows();
  for (int64_t i = 0; i < m; i += kStrip) {
    const int64_t rows = std::min(kStrip, m - i);
    tiles::pack_left(a.block(i, rows, 0, b.k), 0, left);
    for (int64_t j = 0; j < b.n; j += kStrip) {
      tiles::multiply(rows, std::min(kStrip, b.n - j), tiles::steps(b.k), left,
                      b.data + j / kStrip * b.step, nullptr, c + i * ldc + j, ldc, accumulate, none,
                      none);
    }
  }
}

size_t tile_multiply_scratch() {
  return sizeof(float) * (kMostRows / kStrip * kLeft + kMostColumns / kStrip * (kRight + kSums)) +
         3 * kArenaAlignment;
}

}  // namespace hearth
