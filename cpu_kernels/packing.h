// Transposes f32 matrices, loads rows of any stored type as f32, and stores them as bf16.
#pragma once

#include "ops/view.h"

namespace hearth {

/// target[j, i] = source[i, j]; source [rows, cols], target [cols, rows].
void transpose(const float* source, int64_t source_stride, int64_t rows, int64_t cols,
               float* target, int64_t target_stride);

/// One contiguous row of n elements of any stored type as f32, rounded to bf16 if `round`.
void load_row(DType type, const void* source, bool round, float* target, int64_t n);

/// n elements to the nearest bf16, as `load_row` rounds. `target` may begin where `source` begins.
void store_rounded(const float* source, bf16* target, int64_t n);

}  // namespace hearth
