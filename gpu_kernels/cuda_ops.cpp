#include "gpu_kernels/cuda_ops.h"

#include "gpu_kernels/ops/gpu_op_set.h"
#include "ops/registry.h"

namespace hearth {

static const OpSet& cuda_ops() {
  static const HEARTH_GPU::GpuOps ops("cuda");
  return ops;
}

std::string register_cuda_ops() {
  register_op_set(cuda_ops());
  return {};
}

const OpSet& planned_cuda_ops() { return cuda_ops(); }

}  // namespace hearth
