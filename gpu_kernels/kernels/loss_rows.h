// What cross-entropy's kernels take, beside its products, and their launches.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

/// A chunk of trained rows: row r of it is row `trained[r]` of the batch, -1 where there are fewer.
struct LossChunk {
  const int32_t* trained = nullptr;
  const int32_t* labels = nullptr;  // of the whole batch
  int rows = 0;
  int vocabulary = 0;
  float* logits = nullptr;  // [rows, vocabulary], rows begin at multiples of 16 bytes
  int64_t logits_stride = 0;
  double scale = 0;
  bool gradients = false;      // logits become their gradients
  double* row_loss = nullptr;  // [rows]
};

/// loss = the sum over rows, in a fixed order; NaN where a row is trained that no chunk had. A loss that
/// is no number spoils the first elements of `dx` and `weight_gradient`, as far as they are there.
struct LossSum {
  const double* row_loss = nullptr;
  int rows = 0;
  const int32_t* beyond =
      nullptr;  // the next of the compacted rows, -1 if none is trained; or null
  double* loss = nullptr;
  float *dx = nullptr, *weight_gradient = nullptr;
};

/// Rows of a float matrix.
struct FloatRows {
  float* data = nullptr;
  int64_t stride = 0;
};

// All of them enqueue and return. Nothing is done for no rows.
/// trained [rows] = the rows with a label, in order, then -1.
void compact_labels_on(void* stream, const int32_t* labels, int rows, int32_t* trained);
/// Row r of `to` = row trained[r] of `from`, zeros where there is none.
void gather_trained_on(void* stream, const int32_t* trained, int rows, int width, FloatRows from,
                       FloatRows to);
/// Row trained[r] of `to` = row r of `from`.
void scatter_trained_on(void* stream, const int32_t* trained, int rows, int width, FloatRows from,
                        FloatRows to);
/// Rows without a label become zero.
void clear_untrained_on(void* stream, const int32_t* labels, int rows, int width, FloatRows to);
void loss_rows_on(void* stream, const LossChunk& chunk);
void sum_loss_on(void* stream, const LossSum& a);

}  // namespace hearth::HEARTH_GPU
