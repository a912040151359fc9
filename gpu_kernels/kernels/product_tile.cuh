// Which tile of a product a block computes, and what becomes of its sums: shared by the f32 and the
// bf16 kernels.
#pragma once

#include "gpu_kernels/kernels/dropout.cuh"
#include "gpu_kernels/kernels/operand.cuh"

namespace hearth::HEARTH_GPU {

/// Tiles of c that share rows of a or columns of b run at about the same time, so that they find
/// them in the second-level cache: bands of so many row tiles, columns outermost in a band.
constexpr int kBandTiles = 8;

struct BandPlace {
  int row, column;
};
__device__ inline BandPlace band_place(int block, int row_tiles, int column_tiles) {
  const int in_band = kBandTiles * column_tiles;
  const int band = block / in_band, inner = block % in_band;
  const int first = band * kBandTiles;
  const int height = row_tiles - first < kBandTiles ? row_tiles - first : kBandTiles;
  return {first + inner % height, inner / height};
}

/// A block's tile: c[row + i, column + j] with i < rows, j < columns.
struct ProductTile {
  int group = 0;
  int rows = 0, columns = 0;  // 0: nothing to do
  int64_t row = 0;            // forward, dgrad: of the activations; wgrad: of the group's c
  int column = 0;
  int64_t first = 0, depth = 0;  // wgrad: the rows that are summed over
};

template <Form form, int kRows, int kColumns>
__device__ inline ProductTile product_tile(const ProductArgs& args, int block) {
  ProductTile tile;
  int group_columns = 0;
  if constexpr (form == Form::wgrad) {
    const int tiles = args.row_tiles * args.column_tiles;
    tile.group = block / tiles;
    const ProductGroup& group = args.groups != nullptr ? args.groups[tile.group] : args.one;
    const BandPlace place = band_place(block % tiles, args.row_tiles, args.column_tiles);
    const int at = tile.group * args.offset_step;
    tile.first = args.offsets != nullptr ? args.offsets[at] : 0;
    tile.depth =
        (args.offsets != nullptr ? int64_t{args.offsets[at + 1]} : args.rows) - tile.first;
    tile.row = int64_t{place.row} * kRows;
    tile.rows = tile.depth > 0 ? clamp_int(group.rows - place.row * kRows, 0, kRows) : 0;
    tile.column = place.column * kColumns;
    group_columns = group.columns;
  } else {
    const BandPlace place = band_place(block, args.row_tiles, args.column_tiles);
    if (args.tiles != nullptr) {
      const TilePlace found = args.tiles[place.row];
      tile.group = found.group;
      tile.row = found.row;
      tile.rows = found.count;
    } else {
      tile.row = int64_t{place.row} * kRows;
      const int64_t rest = args.rows - tile.row;
      tile.rows = rest < kRows ? static_cast<int>(rest) : kRows;
    }
    tile.column = place.column * kColumns;
    group_columns = args.groups != nullptr ? args.groups[tile.group].columns : args.one.columns;
  }
  tile.columns = clamp_int(group_columns - tile.column, 0, kColumns);
  return tile;
}

/// Takes pairs of neighbouring sums of a tile to c: of the elements (i, j) and (i, j + 1), j even, of
/// which the second need not be there.
struct ProductOutput {
  void* c;  // the tile's first element
  int64_t stride;
  float scale;
  bool bf16_elements, accumulate, by_pairs;
  const DropoutRule* dropout;  // null: nothing is dropped
  int64_t row;
  int column;

  /// What the pair is added to. A thread reads that of many pairs before it puts the first: behind a
  /// store each read would wait for the one before.
  __device__ float2 before(int i, int j, bool second) const {
    if (!accumulate || bf16_elements) return {0, 0};
    const float* const from = static_cast<const float*>(c) + (i * stride + j);
    if (second && by_pairs) return *reinterpret_cast<const float2*>(from);
    return {from[0], second ? from[1] : 0};
  }

  __device__ void put(int i, int j, bool second, float2 old, float x, float y) const {
    x *= scale;
    y *= scale;
    if (dropout != nullptr) {
      const int at = column + j;
      const Philox numbers = dropout_numbers(*dropout, row + i, at / 4);
      const bool upper = at % 4 != 0;
      x = dropped(*dropout, upper ? numbers.word[2] : numbers.word[0], x);
      y = dropped(*dropout, upper ? numbers.word[3] : numbers.word[1], y);
    }
    const int64_t element = i * stride + j;
    if (bf16_elements) {
      auto* const to = static_cast<uint16_t*>(c) + element;
      const uint32_t pair = pack_bf16(x, y);
      to[0] = static_cast<uint16_t>(pair);
      if (second) to[1] = static_cast<uint16_t>(pair >> 16);
      return;
    }
    if (accumulate) {
      x += old.x;
      y += old.y;
    }
    auto* const to = static_cast<float*>(c) + element;
    if (second && by_pairs) {
      *reinterpret_cast<float2*>(to) = {x, y};
      return;
    }
    to[0] = x;
    if (second) to[1] = y;
  }
};

template <Form form>
__device__ inline ProductOutput product_output(const ProductArgs& args, const ProductGroup& group,
                                               const ProductTile& tile) {
  ProductOutput out;
  const int64_t element_bytes = args.c_bf16 ? 2 : 4;
  char* const base = static_cast<char*>(form == Form::wgrad ? group.c : args.c);
  out.stride = form == Form::wgrad ? group.c_stride : args.c_stride;
  out.c = base + (tile.row * out.stride + tile.column) * element_bytes;
  out.scale = group.scale;
  out.bf16_elements = args.c_bf16;
  out.accumulate = form == Form::wgrad || args.accumulate;
  out.by_pairs = reinterpret_cast<uintptr_t>(base) % 8 == 0 && out.stride % 2 == 0;
  out.dropout = nullptr;
  if constexpr (form != Form::wgrad) {  // gradients of weights drop nothing
    const DropoutRule* rule = args.dropouts != nullptr ? args.dropouts + tile.group : &args.dropout;
    if (rule->limit > 0) out.dropout = rule;
  }
  out.row = tile.row;
  out.column = tile.column;
  return out;
}

}  // namespace hearth::HEARTH_GPU
