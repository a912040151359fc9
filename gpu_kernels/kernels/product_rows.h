// Arguments and launches of the row kernels around products.
#pragma once

#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

/// Consecutive rows of groups. No offsets: one group of all rows.
struct RowGroups {
  const int32_t* offsets = nullptr;
  int32_t count = 1;
};

struct PrepareArgs {
  const float* from = nullptr;
  int64_t from_stride = 0;
  const int32_t* source = nullptr;  // row r is row source[r] / choices of `from`; null: row r
  int32_t choices = 1;
  void* to = nullptr;
  int64_t to_stride = 0;
  Stored stored = Stored::f32;  // of `to`: f32 or bf16
  int64_t rows = 0, columns = 0;
  RowGroups groups;
  const DropoutRule* dropouts = nullptr;  // by group, device memory; null: no dropout
};

struct SwigluArgs {
  const float *gate = nullptr, *up = nullptr;
  int64_t gate_stride = 0, up_stride = 0;
  void* h = nullptr;
  int64_t h_stride = 0;
  Stored stored = Stored::f32;
  int64_t rows = 0, columns = 0;
  RowGroups groups;
  const DropoutRule* dropouts = nullptr;
};

struct SwigluGradientArgs {
  const float *z = nullptr, *row_weight = nullptr;
  int64_t z_stride = 0;
  float *gate = nullptr, *up = nullptr, *drow_weight = nullptr;
  int64_t gate_stride = 0, up_stride = 0;
  void *gate_operand = nullptr, *up_operand = nullptr;  // bf16; null: not needed
  void* h = nullptr;
  int64_t h_stride = 0;
  Stored h_stored = Stored::f32;
  void* h_dropped = nullptr;   // of type `stored`; null: not needed
  int64_t operand_stride = 0;  // of h_dropped, gate_operand and up_operand
  Stored stored = Stored::f32;
  int64_t rows = 0, columns = 0;
  RowGroups groups;
  const DropoutRule* dropouts = nullptr;  // of h_dropped
};

// All functions enqueue and return. They do nothing if there are no rows.
void plan_tiles_on(void* stream, const int32_t* offsets, int groups, TilePlace* tiles,
                   int tile_count);
void prepare_rows_on(void* stream, const PrepareArgs& args);
void swiglu_rows_on(void* stream, const SwigluArgs& args);
void swiglu_gradient_rows_on(void* stream, const SwigluGradientArgs& args);
void fill_bias_on(void* stream, const Operand& bias, float* to, int64_t stride, int64_t rows,
                  int64_t columns);
void add_column_sums_on(void* stream, const float* x, int64_t stride, int64_t rows, int64_t columns,
                        float* to);

}  // namespace hearth::HEARTH_GPU
