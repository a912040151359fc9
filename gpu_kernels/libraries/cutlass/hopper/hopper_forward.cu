#include "gpu_kernels/libraries/cutlass/hopper/hopper_kernel.cuh"

namespace hearth::HEARTH_GPU {

// b is [columns, depth] in memory.
std::string hopper_forward(const CutlassLaunch& launch) {
  return run_hopper<cutlass::layout::RowMajor, cutlass::layout::ColumnMajor>(launch);
}

}  // namespace hearth::HEARTH_GPU
