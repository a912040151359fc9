#include "cuda_emulator/emulated_ops.h"

#include "gpu_kernels/ops/gpu_op_set.h"

namespace hearth::test {

const OpSet& emulated_ops() {
  static const HEARTH_GPU::GpuOps ops("cuda-emulated");
  return ops;
}

const OpSet& emulated_ops_as_cuda() {
  static const HEARTH_GPU::GpuOps ops("cuda");
  return ops;
}

}  // namespace hearth::test
