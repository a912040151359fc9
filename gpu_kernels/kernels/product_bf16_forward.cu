#include "gpu_kernels/kernels/product_bf16_launch.cuh"
#include "gpu_kernels/kernels/product_launches.h"

namespace hearth::HEARTH_GPU {

void product_bf16_forward_on(void* stream, ProductArgs args, int64_t columns, bool copied) {
  product_bf16_rows_on<Form::forward>(stream, args, columns, copied);
}

}  // namespace hearth::HEARTH_GPU
