#include "gpu_kernels/libraries/cutlass/hopper/hopper_kernel.cuh"

namespace hearth::HEARTH_GPU {

// a is [depth, rows] in memory.
std::string hopper_wgrad(const CutlassLaunch& launch) {
  return run_hopper<cutlass::layout::ColumnMajor, cutlass::layout::RowMajor>(launch);
}

}  // namespace hearth::HEARTH_GPU
