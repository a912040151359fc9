// The null back end: plans alone.
#include "gpu_kernels/cuda_ops.h"
#include "gpu_kernels/ops/gpu_op_set.h"

namespace hearth {

std::string register_cuda_ops() { return "this build has no CUDA back end"; }

const OpSet& planned_cuda_ops() {
  static const HEARTH_GPU::GpuOpFacts ops("cuda");
  return ops;
}

}  // namespace hearth
