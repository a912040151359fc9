// Transposes f32 matrices, and loads rows of any stored type as f32.
#pragma once

#include "ops/view.h"

namespace hearth {

/// target[j, i] = source[i, j]; source [rows, cols], target [cols, rows].
void transpose(const float* source, int64_t source_stride, int64_t rows, int64_t cols,
               float* target, int64_t target_stride);

/// One contiguous row of n elements of any stored type as f32, rounded to bf16 if `round`.
void load_row(DType type, const void* source, bool round, float* target, int64_t n);

}  // namespace hearth
