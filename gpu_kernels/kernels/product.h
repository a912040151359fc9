// What the product kernels take: plain data, filled by the host and read by the device.
//
// A product has groups: one for a dense map, one an expert for experts, whose rows of the
// activations lie one expert after the other. Forms, with depth the dimension that is summed over:
//   forward: c[rows, columns] = a[rows, depth] weight[columns, depth]^T      y = x W^T
//   dgrad:   c[rows, columns] = a[rows, depth] weight[depth, columns]        dx = dy W
//   wgrad:   c[columns of a, columns of b] += a^T b over the group's rows    dW += dy^T x
// forward and dgrad may have two segments whose products are added: a second pair of a and weight.
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

/// Rows of forward and dgrad are cut in tiles of so many, none with rows of two groups.
constexpr int kTileRows = 128;

/// The rows of a tile: [row, row + count) of the activations. A count of 0: no tile.
struct TilePlace {
  int32_t group = 0;
  int32_t count = 0;
  int64_t row = 0;
};

/// What differs from group to group.
struct ProductGroup {
  const void* weight[2] = {};     // of the two segments; unused in wgrad
  int64_t weight_stride[2] = {};  // elements
  int32_t depth[2] = {};          // 0: the group has no such segment
  Stored stored[2] = {};
  int32_t columns = 0;  // of c; 0: nothing is to be done for the group
  int32_t rows = 0;     // of c in wgrad: columns of a
  float* c = nullptr;   // of wgrad
  int64_t c_stride = 0;
  float scale = 1;  // c = scale * the sum
};

/// Dropout on the device, see ops/dropout.h.
struct DropoutRule {
  uint64_t key = 0;
  uint64_t limit = 0;  // of 2^32: a number below it drops; 0: nothing is dropped
  const int32_t* ids = nullptr;
  int64_t first_row = 0;
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
  int32_t group_count = 1;
  int32_t row_tiles = 0;     // forward, dgrad: upper bound; wgrad: of the largest c
  int32_t column_tiles = 0;  // of the largest c
  int64_t rows = 0;          // of the activations
  void* c = nullptr;         // forward, dgrad
  int64_t c_stride = 0;
  bool c_bf16 = false;      // c is stored as bf16, else f32
  bool accumulate = false;  // c +=, else c =
};

}  // namespace hearth::HEARTH_GPU
