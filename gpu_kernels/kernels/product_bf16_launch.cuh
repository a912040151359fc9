// Starts one tiling of the bf16 product kernel.
#pragma once

#include "gpu_kernels/kernels/product_bf16.cuh"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {

/// Columns up to which a narrow tile wastes less.
constexpr int64_t kNarrow = 64;

inline int64_t parts_of(int64_t n, int64_t part) { return (n + part - 1) / part; }

/// Whether tiles of 256 columns compute no more than those of 128.
inline bool takes_wide_tiles(int64_t columns) {
  return parts_of(columns, 256) * 2 == parts_of(columns, 128);
}

template <Form form, int kRows, int kColumns, int kWarpRows, int kWarpColumns, bool kCopied>
void product_bf16_tiled(void* stream, ProductArgs args, int64_t rows, int64_t columns) {
  using Tiling = Bf16Tiling<form, kRows, kColumns, kWarpRows, kWarpColumns, kCopied>;
  args.row_tiles = static_cast<int32_t>(parts_of(rows, kRows));
  args.column_tiles = static_cast<int32_t>(parts_of(columns, kColumns));
  const int64_t blocks =
      int64_t{args.row_tiles} * args.column_tiles * (form == Form::wgrad ? args.group_count : 1);
  if (blocks == 0) return;
  launch(product_bf16<form, kRows, kColumns, kWarpRows, kWarpColumns, kCopied>, blocks,
         Tiling::kThreads, Tiling::kSharedBytes, stream, args);
}

/// forward and dgrad.
template <Form form>
void product_bf16_rows_on(void* stream, const ProductArgs& args, int64_t columns, bool copied) {
  const int64_t rows = args.tiles != nullptr ? int64_t{args.row_tiles} * kTileRows : args.rows;
  if (columns <= kNarrow) {
    if (copied) {
      product_bf16_tiled<form, 128, 32, 32, 32, true>(stream, args, rows, columns);
    } else {
      product_bf16_tiled<form, 128, 32, 32, 32, false>(stream, args, rows, columns);
    }
  } else if (!copied) {
    product_bf16_tiled<form, 128, 128, 64, 32, false>(stream, args, rows, columns);
  } else if (takes_wide_tiles(columns)) {
    product_bf16_tiled<form, 128, 256, 64, 64, true>(stream, args, rows, columns);
  } else {
    product_bf16_tiled<form, 128, 128, 64, 64, true>(stream, args, rows, columns);
  }
}

}  // namespace hearth::HEARTH_GPU
