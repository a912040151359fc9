#include "gpu_kernels/kernels/product_f32.cuh"

#include "gpu_kernels/kernels/product_launches.h"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

/// Columns up to which a narrow tile wastes less.
constexpr int64_t kNarrowF32 = 64;

int32_t tiles_over(int64_t n, int64_t tile) { return static_cast<int32_t>((n + tile - 1) / tile); }

template <Form form, int kThreadColumns>
void tiled(void* stream, ProductArgs args, int64_t rows, int64_t columns) {
  if (form != Form::wgrad && args.tiles == nullptr) rows = args.rows;
  if (form == Form::wgrad || args.tiles == nullptr) {
    args.row_tiles = tiles_over(rows, F32Tiling::kRows);
  }
  args.column_tiles = tiles_over(columns, 16 * kThreadColumns);
  const int64_t blocks =
      int64_t{args.row_tiles} * args.column_tiles * (form == Form::wgrad ? args.group_count : 1);
  if (blocks == 0) return;
  launch(product_f32<form, kThreadColumns>, blocks, F32Tiling::kThreads, 0, stream, args);
}

template <Form form>
void of_form(void* stream, const ProductArgs& args, int64_t rows, int64_t columns) {
  if (columns <= kNarrowF32) {
    tiled<form, 2>(stream, args, rows, columns);
  } else {
    tiled<form, 8>(stream, args, rows, columns);
  }
}

}  // namespace

void product_f32_on(void* stream, Form form, ProductArgs args, int64_t rows, int64_t columns) {
  switch (form) {
    case Form::forward: return of_form<Form::forward>(stream, args, rows, columns);
    case Form::dgrad: return of_form<Form::dgrad>(stream, args, rows, columns);
    case Form::wgrad: return of_form<Form::wgrad>(stream, args, rows, columns);
  }
}

void product_bf16_on(void* stream, Form form, ProductArgs args, int64_t rows, int64_t columns,
                     bool copied) {
  switch (form) {
    case Form::forward: return product_bf16_forward_on(stream, args, columns, copied);
    case Form::dgrad: return product_bf16_dgrad_on(stream, args, columns, copied);
    case Form::wgrad: return product_bf16_wgrad_on(stream, args, rows, columns);
  }
}

}  // namespace hearth::HEARTH_GPU
