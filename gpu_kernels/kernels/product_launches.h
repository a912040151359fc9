// Launches of the product kernels. All enqueue on a stream and return.
#pragma once

#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

/// Fills in the numbers of tiles; `rows` (wgrad alone) and `columns` are those of the largest c.
/// Nothing is done where there are none.
void product_f32_on(void* stream, Form form, ProductArgs args, int64_t rows, int64_t columns);
/// The operands are bf16 in rows of whole chunks, 16-byte aligned; `copied`: weights are so too.
void product_bf16_on(void* stream, Form form, ProductArgs args, int64_t rows, int64_t columns,
                     bool copied);

// Of product_bf16_on, a form a file, because they take long to compile.
void product_bf16_forward_on(void* stream, ProductArgs args, int64_t columns, bool copied);
void product_bf16_dgrad_on(void* stream, ProductArgs args, int64_t columns, bool copied);
void product_bf16_wgrad_on(void* stream, ProductArgs args, int64_t rows, int64_t columns);

}  // namespace hearth::HEARTH_GPU
