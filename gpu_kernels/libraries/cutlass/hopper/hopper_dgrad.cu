#include "gpu_kernels/libraries/cutlass/hopper/hopper_kernel.cuh"

namespace hearth::HEARTH_GPU {

std::string hopper_dgrad(const CutlassLaunch& launch) {
  return run_hopper<cutlass::layout::RowMajor, cutlass::layout::RowMajor>(launch);
}

}  // namespace hearth::HEARTH_GPU
