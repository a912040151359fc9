// What the elementwise kernels take, and their launches.
#pragma once

#include <cstdint>

#include "gpu_kernels/kernels/matrix.h"
#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

enum class Elementwise : int32_t {
  add,              // out = a + b
  clamp,            // out = a, within limit
  clamp_gradient,   // out = a where |b| <= limit, else 0
  swiglu,           // out = silu(a) * b
  swiglu_gradient,  // from a = dh: b and c, gate and up, become their gradients, out = silu(b) * c
};

struct ElementwiseArguments {
  Elementwise op = Elementwise::add;
  int64_t rows = 0, cols = 0;
  bool quads = false;  // in_quads of all
  Matrix<const float> a, b;
  Matrix<float> gate, up;  // of swiglu_gradient
  Matrix<float> out;
  float limit = 0;
};

struct CastArguments {
  int64_t rows = 0, cols = 0;
  bool quads = false;
  Operand from;
  Matrix<void> to;
  Stored stored = Stored::f32;
};

// All of them enqueue and return. Nothing is done for no elements.
void elementwise_on(void* stream, const ElementwiseArguments& a);
void cast_on(void* stream, const CastArguments& a);

}  // namespace hearth::HEARTH_GPU
