// Operands of a product, and how they are brought into the f32 strips that the micro kernel reads.
#pragma once

#include "cpu_kernels/micro_kernel.h"
#include "ops/view.h"

namespace hearth {

/// A matrix as it stands in memory, or its transpose.
struct Operand {
  ConstView memory;  // f32, bf16 or f16
  bool transposed = false;

  Operand(ConstView m, bool t = false) : memory(m), transposed(t) {}  // NOLINT: implicit
  int64_t rows() const { return transposed ? memory.cols : memory.rows; }
  int64_t cols() const { return transposed ? memory.rows : memory.cols; }
  /// Rows [r, r + m) and columns [c, c + n).
  Operand block(int64_t r, int64_t m, int64_t c, int64_t n) const;
};

/// target[i * kStripStride + p] = a[i, p], rounded to bf16 if `round`.
void pack_left(const Operand& a, bool round, float* target);

/// Strips of `lanes` columns, one after the other, each [b.rows(), lanes]; columns past the end
/// are left as they are. Takes b.rows() * round_up(b.cols(), lanes) floats.
void pack_right(const Operand& b, bool round, int64_t lanes, float* target);

/// target[j, i] = source[i, j] (+ add[i] unless null); source [rows, cols], target [cols, rows].
void transpose(const float* source, int64_t source_stride, int64_t rows, int64_t cols,
               const float* add, float* target, int64_t target_stride);

/// One contiguous row of n elements of any stored type as f32, rounded to bf16 if `round`.
void load_row(DType type, const void* source, bool round, float* target, int64_t n);

}  // namespace hearth
