// Arguments of the product kernels: plain data, written by the host and read by the device.
//
// A product has groups: one group for a dense map, or one per expert; activations are sorted by
// expert. Forms; depth is the dimension that is summed over:
//   forward: c[rows, columns] = a[rows, depth] weight[columns, depth]^T      y = x W^T
//   dgrad:   c[rows, columns] = a[rows, depth] weight[depth, columns]        dx = dy W
//   wgrad:   c[columns of a, columns of b] += a^T b over the group's rows    dW += dy^T x
// forward and dgrad may have a second segment: another pair of a and weight, whose product is
// added.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

enum class Form : int32_t { forward, dgrad, wgrad };

/// Element types that the kernels read.
enum class Stored : int32_t { f32, bf16, f16 };

/// A row-major matrix in device memory; `stride` elements from one row to the next.
struct Operand {
  const void* data = nullptr;
  int64_t stride = 0;
  Stored stored = Stored::f32;
};

/// Rows per tile in forward and dgrad. A tile has rows of only one group.
constexpr int kTileRows = 128;

/// The rows of a tile: [row, row + count) of the activations. count 0: no tile.
struct TilePlace {
  int32_t group = 0;
  int32_t count = 0;
  int64_t row = 0;
};

/// The parameters of one group.
struct ProductGroup {
  const void* weight[2] = {};     // of the two segments; unused in wgrad
  int64_t weight_stride[2] = {};  // elements
  int32_t depth[2] = {};          // 0: the group has no such segment
  Stored stored[2] = {};
  int32_t columns = 0;  // of c; 0: nothing to do for this group
  int32_t rows = 0;     // of c in wgrad: the number of columns of a
  float* c = nullptr;   // only in wgrad
  int64_t c_stride = 0;
  float scale = 1;  // c = scale * the sum
};

/// Dropout on the device (ops/dropout.h).
struct DropoutRule {
  uint64_t key = 0;
  uint64_t limit = 0;  // a 32-bit number below it drops; 0: no dropout
  const int32_t* ids = nullptr;
  int64_t first_row = 0;
  int64_t first_quad = 0;  // of the part's columns, in quads of the whole input
  float scale = 1;
};

struct ProductArgs {
  Operand a[2];                          // of the two segments; wgrad: a and b
  const ProductGroup* groups = nullptr;  // device memory; null: `one`
  ProductGroup one;
  const DropoutRule* dropouts = nullptr;  // by group, device memory; null: `dropout`
  DropoutRule dropout;                    // of forward and dgrad: c += drop(scale * the sum)
  const TilePlace* tiles = nullptr;       // forward, dgrad; null: one group of all rows
  const int32_t* offsets = nullptr;       // wgrad: rows of the groups; null: one group of all rows
  int32_t offset_step = 1;                // group g has the rows from offsets[g * offset_step] on
  int32_t group_count = 1;
  int32_t row_tiles = 0;     // forward, dgrad: upper bound; wgrad: of the largest c
  int32_t column_tiles = 0;  // of the largest c
  int64_t rows = 0;          // of the activations
  void* c = nullptr;         // forward, dgrad
  int64_t c_stride = 0;
  bool c_bf16 = false;      // c is bf16, else f32
  bool accumulate = false;  // c +=, else c =
};

}  // namespace hearth::HEARTH_GPU
