// The null back end.
#include "gpu_kernels/cuda_ops.h"

namespace hearth {

std::string register_cuda_ops() { return "this build has no CUDA back end"; }

}  // namespace hearth
