// Launches of the product kernels. All functions enqueue on a stream and return.
#pragma once

#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

/// Fills in the numbers of tiles. `rows` (only wgrad) and `columns` are the size of the largest c.
/// Does nothing if c is empty.
void product_f32_on(void* stream, Form form, ProductArgs args, int64_t rows, int64_t columns);
/// Operands are bf16, with 16-byte aligned rows of whole 16-byte chunks. `copied`: so are weights.
void product_bf16_on(void* stream, Form form, ProductArgs args, int64_t rows, int64_t columns,
                     bool copied);

// The forms of product_bf16_on, one per source file, because they take long to compile.
void product_bf16_forward_on(void* stream, ProductArgs args, int64_t columns, bool copied);
void product_bf16_dgrad_on(void* stream, ProductArgs args, int64_t columns, bool copied);
void product_bf16_wgrad_on(void* stream, ProductArgs args, int64_t rows, int64_t columns);

}  // namespace hearth::HEARTH_GPU
