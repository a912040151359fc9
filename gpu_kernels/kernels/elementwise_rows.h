// Arguments and launches of the elementwise kernels.
#pragma once

#include <cstdint>

#include "gpu_kernels/kernels/matrix.h"
#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

enum class Elementwise : int32_t {
  add,              // out = a + b
  clamp,            // out = min(max(a, -limit), limit)
  clamp_gradient,   // out = a where |b| <= limit, else 0
  swiglu,           // out = silu(a) * b
  swiglu_gradient,  // a = dh: replaces gate and up by their gradients; out = silu(gate) * up
};

struct ElementwiseArguments {
  Elementwise op = Elementwise::add;
  int64_t rows = 0, cols = 0;
  bool quads = false;  // in_quads of all views
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

// All functions enqueue and return. They do nothing if there are no elements.
void elementwise_on(void* stream, const ElementwiseArguments& a);
void cast_on(void* stream, const CastArguments& a);

}  // namespace hearth::HEARTH_GPU
