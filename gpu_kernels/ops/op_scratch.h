// What ops take of a stream's scratch. Plans ask for it where there is no GPU, so nothing here
// launches a kernel, and builds without CUDA have it, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/op_table.h"

namespace hearth::HEARTH_GPU {

void add_scratch(OpTable& ops);

/// Whether attention rounds its operands to bf16. It computes other shapes in f32.
bool is_rounded(const AttentionShape& shape);

/// Of the loss: the most rows whose logits exist at once, and the floats from one row to the next.
int64_t chunk_rows(int64_t tokens, int64_t vocabulary);
int64_t logits_stride(int64_t vocabulary);

}  // namespace hearth::HEARTH_GPU
