#include "gpu_kernels/libraries/cutlass/ampere/ampere_kernel.cuh"

namespace hearth::HEARTH_GPU {

// a is [depth, rows] in memory.
std::string ampere_wgrad(const CutlassLaunch& launch) {
  return run_ampere<cutlass::layout::ColumnMajor, cutlass::layout::RowMajor>(launch);
}

}  // namespace hearth::HEARTH_GPU
