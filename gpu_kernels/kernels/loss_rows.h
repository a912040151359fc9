// Arguments and launches of the cross-entropy kernels, except its products.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

/// A chunk of trained rows: row r is row `trained[r]` of the batch; -1 past the last trained row.
struct LossChunk {
  const int32_t* trained = nullptr;
  const int32_t* labels = nullptr;  // of the whole batch
  int rows = 0;
  int vocabulary = 0;
  float* logits = nullptr;  // [rows, vocabulary], rows are 16-byte aligned
  int64_t logits_stride = 0;
  double scale = 0;
  bool gradients = false;      // replace logits by their gradients
  double* row_loss = nullptr;  // [rows]
};

/// loss = the sum over rows, in a fixed order; NaN if a trained row was in no chunk. If the loss is
/// not finite, the first elements of `dx` and `weight_gradient`, if present, become NaN.
struct LossSum {
  const double* row_loss = nullptr;
  int rows = 0;
  const int32_t* beyond = nullptr;  // the compacted row after the chunks; -1: not trained; or null
  double* loss = nullptr;
  float *dx = nullptr, *weight_gradient = nullptr;
};

/// Rows of a float matrix.
struct FloatRows {
  float* data = nullptr;
  int64_t stride = 0;
};

// All functions enqueue and return. They do nothing if there are no rows.
/// trained [rows] = indices of the rows with a label, in order, then -1.
void compact_labels_on(void* stream, const int32_t* labels, int rows, int32_t* trained);
/// Row r of `to` = row trained[r] of `from`; zeros if trained[r] is -1.
void gather_trained_on(void* stream, const int32_t* trained, int rows, int width, FloatRows from,
                       FloatRows to);
/// Row trained[r] of `to` = row r of `from`.
void scatter_trained_on(void* stream, const int32_t* trained, int rows, int width, FloatRows from,
                        FloatRows to);
/// Clears rows without a label.
void clear_untrained_on(void* stream, const int32_t* labels, int rows, int width, FloatRows to);
void loss_rows_on(void* stream, const LossChunk& chunk);
void sum_loss_on(void* stream, const LossSum& a);

}  // namespace hearth::HEARTH_GPU
