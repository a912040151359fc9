#include "gpu_kernels/elementwise_rows.h"
#include "gpu_kernels/kernels/quads.cuh"

namespace hearth::HEARTH_GPU {
namespace {

// In f32, as torch's fused update: memory is the limit, not arithmetic. What decay and step take off
// is summed before it meets the weight, so that the weight is rounded once.
__global__ void __launch_bounds__(kQuadThreads)
    adamw_kernel(const __grid_constant__ AdamWArguments a) {
  for_quads_of_block(a.cols, [&](int64_t row, int64_t col, int n) {
    const AdamWStep& s = a.step;
    const auto at = [&](const Matrix<float>& m) { return m.data + row * m.stride + col; };
    float g[4], w[4], m[4], v[4];
    read4(at(a.gradient), n, a.quads, g);
    read4(at(a.master), n, a.quads, w);
    read4(at(a.moment1), n, a.quads, m);
    read4(at(a.moment2), n, a.quads, v);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float gradient = g[i] * s.gradient_scale;
      m[i] = fmaf(s.beta1, m[i], s.rest1 * gradient);
      v[i] = fmaf(s.beta2, v[i], s.rest2 * gradient * gradient);
      const float change = s.rate * m[i] / fmaf(sqrtf(v[i]), s.root_c2, s.eps);
      w[i] -= fmaf(w[i], s.decay, change);
      g[i] = 0;
    }
    write4(at(a.gradient), n, a.quads, g);
    write4(at(a.master), n, a.quads, w);
    write4(at(a.moment1), n, a.quads, m);
    write4(at(a.moment2), n, a.quads, v);
    if (a.working.data != nullptr) {
      write4(a.working.data, a.stored, row * a.working.stride + col, n, a.quads, w);
    }
  });
}

}  // namespace

void adamw_on(void* stream, const AdamWArguments& a) {
  if (a.rows == 0 || a.cols == 0) return;
  launch(adamw_kernel, quad_blocks(a.rows, a.cols), kQuadThreads, 0, stream, a);
}

}  // namespace hearth::HEARTH_GPU
