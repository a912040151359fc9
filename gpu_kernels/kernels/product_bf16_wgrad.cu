#include "gpu_kernels/kernels/product_bf16_launch.cuh"
#include "gpu_kernels/kernels/product_launches.h"

namespace hearth::HEARTH_GPU {

void product_bf16_wgrad_on(void* stream, ProductArgs args, int64_t rows, int64_t columns) {
  constexpr Form kForm = Form::wgrad;
  if (rows <= kNarrow) {
    product_bf16_tiled<kForm, 32, 128, 32, 32, true>(stream, args, rows, columns);
  } else if (columns <= kNarrow) {
    product_bf16_tiled<kForm, 128, 32, 32, 32, true>(stream, args, rows, columns);
  } else if (takes_wide_tiles(columns)) {
    product_bf16_tiled<kForm, 128, 256, 64, 64, true>(stream, args, rows, columns);
  } else {
    product_bf16_tiled<kForm, 128, 128, 64, 64, true>(stream, args, rows, columns);
  }
}

}  // namespace hearth::HEARTH_GPU
