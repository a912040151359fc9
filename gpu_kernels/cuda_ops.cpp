#include "gpu_kernels/cuda_ops.h"

#include "gpu_kernels/ops/gpu_op_set.h"
#include "ops/registry.h"

namespace hearth {

std::string register_cuda_ops() {
  static const HEARTH_GPU::GpuOps ops("cuda");
  register_op_set(ops);
  return {};
}

}  // namespace hearth
