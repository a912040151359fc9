#include "gpu_kernels/kernels/product_rows.cuh"

#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {

void plan_tiles_on(void* stream, const int32_t* offsets, int groups, TilePlace* tiles,
                   int tile_count) {
  launch(plan_tiles, 1, kPlanThreads, 0, stream, offsets, groups, tiles, tile_count);
}

void prepare_rows_on(void* stream, const PrepareArgs& args) {
  if (args.rows > 0) launch(prepare_rows, args.rows, kRowThreads, 0, stream, args);
}

void swiglu_rows_on(void* stream, const SwigluArgs& args) {
  if (args.rows > 0) launch(swiglu_rows, args.rows, kRowThreads, 0, stream, args);
}

void swiglu_gradient_rows_on(void* stream, const SwigluGradientArgs& args) {
  if (args.rows > 0) launch(swiglu_gradient_rows, args.rows, kRowThreads, 0, stream, args);
}

void fill_bias_on(void* stream, const Operand& bias, float* to, int64_t stride, int64_t rows,
                  int64_t columns) {
  if (rows > 0) launch(fill_bias, rows, kRowThreads, 0, stream, bias, to, stride, columns);
}

void add_column_sums_on(void* stream, const float* x, int64_t stride, int64_t rows, int64_t columns,
                        float* to) {
  const int64_t blocks = (columns + kSumColumns - 1) / kSumColumns;
  if (rows > 0 && blocks > 0) {
    launch(add_column_sums, blocks, kSumColumns * kSumLanes, 0, stream, x, stride, rows, columns,
           to);
  }
}

}  // namespace hearth::HEARTH_GPU
