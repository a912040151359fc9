#include "gpu_kernels/kernels/elementwise_rows.h"
#include "gpu_kernels/kernels/quads.cuh"

namespace hearth::HEARTH_GPU {
namespace {

template <Elementwise kOp>
__global__ void __launch_bounds__(kQuadThreads)
    elementwise_kernel(const __grid_constant__ ElementwiseArguments a) {
  for_quads_of_block(a.cols, [&](int64_t row, int64_t col, int n) {
    float x[4], y[4], z[4];
    const auto at = [&](const auto& m) { return m.data + row * m.stride + col; };
    read4(at(a.a), n, a.quads, x);
    if constexpr (kOp == Elementwise::swiglu_gradient) {
      read4(at(a.gate), n, a.quads, y);
      read4(at(a.up), n, a.quads, z);
    } else if constexpr (kOp != Elementwise::clamp) {
      read4(at(a.b), n, a.quads, y);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kOp == Elementwise::add) {
        x[i] = x[i] + y[i];
      } else if constexpr (kOp == Elementwise::clamp) {
        x[i] = x[i] < -a.limit ? -a.limit : x[i] > a.limit ? a.limit : x[i];
      } else if constexpr (kOp == Elementwise::clamp_gradient) {
        x[i] = fabsf(y[i]) <= a.limit ? x[i] : 0.0f;
      } else if constexpr (kOp == Elementwise::swiglu) {
        x[i] = x[i] * logistic(x[i]) * y[i];
      } else {
        // silu(g) = g s with s = sigmoid(g); its derivative is s (1 + g (1 - s)).
        const float d = x[i], g = y[i], u = z[i], s = logistic(g);
        y[i] = d * u * s * (1.0f + g * (1.0f - s));
        z[i] = d * g * s;
        x[i] = g * s * u;
      }
    }
    if constexpr (kOp == Elementwise::swiglu_gradient) {
      write4(at(a.gate), n, a.quads, y);
      write4(at(a.up), n, a.quads, z);
    }
    write4(at(a.out), n, a.quads, x);
  });
}

__global__ void __launch_bounds__(kQuadThreads)
    cast_kernel(const __grid_constant__ CastArguments a) {
  for_quads_of_block(a.cols, [&](int64_t row, int64_t col, int n) {
    float x[4];
    read4(a.from.data, a.from.stored, row * a.from.stride + col, n, a.quads, x);
    write4(a.to.data, a.stored, row * a.to.stride + col, n, a.quads, x);
  });
}

template <Elementwise kOp>
void launch_elementwise(void* stream, const ElementwiseArguments& a) {
  launch(elementwise_kernel<kOp>, quad_blocks(a.rows, a.cols), kQuadThreads, 0, stream, a);
}

}  // namespace

void elementwise_on(void* stream, const ElementwiseArguments& a) {
  if (a.rows == 0 || a.cols == 0) return;
  switch (a.op) {
    case Elementwise::add: return launch_elementwise<Elementwise::add>(stream, a);
    case Elementwise::clamp: return launch_elementwise<Elementwise::clamp>(stream, a);
    case Elementwise::clamp_gradient:
      return launch_elementwise<Elementwise::clamp_gradient>(stream, a);
    case Elementwise::swiglu: return launch_elementwise<Elementwise::swiglu>(stream, a);
    case Elementwise::swiglu_gradient:
      return launch_elementwise<Elementwise::swiglu_gradient>(stream, a);
  }
}

void cast_on(void* stream, const CastArguments& a) {
  if (a.rows == 0 || a.cols == 0) return;
  launch(cast_kernel, quad_blocks(a.rows, a.cols), kQuadThreads, 0, stream, a);
}

}  // namespace hearth::HEARTH_GPU
