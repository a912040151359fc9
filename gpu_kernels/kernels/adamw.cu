#include "gpu_kernels/kernels/adamw_runs.h"
#include "gpu_kernels/kernels/quads.cuh"
#include "gpu_kernels/kernels/runs.cuh"

namespace hearth::HEARTH_GPU {
namespace {

/// Four elements of a run, from `at` on, as far as there are n. In f32, as torch's fused update:
/// memory is the limit, not arithmetic. What decay and step take off is summed before it meets the
/// weight, so that the weight is rounded once.
__device__ void update4(const AdamWStep& s, const AdamWRun& run, int64_t at, int n) {
  float g[4], w[4], m[4], v[4];
  read4(run.gradient + at, n, run.quads, g);
  read4(run.master + at, n, run.quads, w);
  read4(run.moment1 + at, n, run.quads, m);
  read4(run.moment2 + at, n, run.quads, v);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float gradient = g[i] * s.gradient_scale;
    m[i] = fmaf(s.beta1, m[i], s.rest1 * gradient);
    v[i] = fmaf(s.beta2, v[i], s.rest2 * gradient * gradient);
    const float change = s.rate * m[i] / fmaf(sqrtf(v[i]), s.root_c2, s.eps);
    w[i] -= fmaf(w[i], s.decay, change);
    g[i] = 0;
  }
  write4(run.gradient + at, n, run.quads, g);
  write4(run.master + at, n, run.quads, w);
  write4(run.moment1 + at, n, run.quads, m);
  write4(run.moment2 + at, n, run.quads, v);
  if (run.working != nullptr) write4(run.working, run.stored, at, n, run.quads, w);
}

__global__ void __launch_bounds__(kQuadThreads)
    adamw_kernel(const __grid_constant__ AdamWArguments a) {
  const AdamWRun run = run_of_block(a.runs, a.count, blockIdx.x);
  const int64_t first = (blockIdx.x - run.first_block) * kAdamWBlock;
#pragma unroll 2
  for (int64_t i = int64_t{4} * threadIdx.x; i < kAdamWBlock; i += 4 * kQuadThreads) {
    const int64_t at = first + i, rest = run.size - at;
    if (rest > 0) update4(a.step, run, at, rest < 4 ? static_cast<int>(rest) : 4);
  }
}

}  // namespace

void adamw_on(void* stream, const AdamWArguments& a) {
  if (a.blocks > 0) launch(adamw_kernel, a.blocks, kQuadThreads, 0, stream, a);
}

}  // namespace hearth::HEARTH_GPU
