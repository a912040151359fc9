// Arguments and launches of kernels over rows of tokens: embedding, norm, rope, sigmoid gate.
#pragma once

#include <cstdint>

#include "gpu_kernels/kernels/matrix.h"
#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

struct EmbeddingArguments {
  const int32_t* ids = nullptr;
  int64_t rows = 0, cols = 0;
  int64_t vocabulary = 0, padding = -1;
  bool quads = false;
  Operand table;             // of the forward
  Matrix<float> out;         // of the forward
  Matrix<const float> dout;  // of the backward
  Matrix<float> table_gradient;
};

struct NoiseArguments {
  int64_t rows = 0, cols = 0;
  const int32_t* offsets = nullptr;  // of documents, one more than there are
  int64_t documents = 0;
  uint64_t key = 0;
  double alpha = 0;
  bool quads = false;
  Matrix<float> x;
};

struct NormArguments {
  int64_t rows = 0, cols = 0;
  bool quads = false;
  float eps = 0;
  Matrix<const float> x;
  Operand weight;
  Matrix<float> y;           // of the forward; may be x
  float* rstd = nullptr;     // written by the forward, read by the backward
  Matrix<const float> dy;    // of the backward
  Matrix<float> dx;          // may be dy
  float* partial = nullptr;  // [norm_parts(rows), cols]
  float* weight_gradient = nullptr;
};

/// A norm's weight gradient is summed over fixed blocks of rows, then over the blocks.
constexpr int64_t kNormParts = 256;
constexpr int64_t norm_part_rows(int64_t rows) {
  constexpr int64_t kFewest = 32;
  const int64_t even = (rows + kNormParts - 1) / kNormParts;
  return even > kFewest ? even : kFewest;
}

struct RopeArguments {
  Matrix<float> x;
  int64_t rows = 0, heads = 0, half = 0;
  const int32_t* positions = nullptr;
  int64_t position_count = 0;
  Matrix<const float> cosine, sine;
  float sign = 1;
};

struct GateArguments {
  int64_t rows = 0, cols = 0;
  bool quads = false;
  const float* logits = nullptr;
  Matrix<const float> x;  // dy of the backward
  Matrix<const float> y;  // of the backward: the forward's result
  Matrix<float> out;      // may be x
  float* dlogits = nullptr;
};

// All functions enqueue and return. They do nothing if there are no rows.
/// Invalid ids give rows of NaN.
void embedding_on(void* stream, const EmbeddingArguments& a);
void embedding_gradient_on(void* stream, const EmbeddingArguments& a);
void embedding_noise_on(void* stream, const NoiseArguments& a);
void rmsnorm_on(void* stream, const NormArguments& a);
/// The weight's gradient. Enqueue it before rmsnorm_gradient_on, which may overwrite dy by dx.
void rmsnorm_weight_gradient_on(void* stream, const NormArguments& a);
void rmsnorm_gradient_on(void* stream, const NormArguments& a);
void rope_on(void* stream, const RopeArguments& a);
void sigmoid_gate_on(void* stream, const GateArguments& a);
void sigmoid_gate_gradient_on(void* stream, const GateArguments& a);

}  // namespace hearth::HEARTH_GPU
