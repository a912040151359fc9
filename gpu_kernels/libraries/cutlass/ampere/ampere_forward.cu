#include "gpu_kernels/libraries/cutlass/ampere/ampere_kernel.cuh"

namespace hearth::HEARTH_GPU {

// b is [columns, depth] in memory.
std::string ampere_forward(const CutlassLaunch& launch) {
  return run_ampere<cutlass::layout::RowMajor, cutlass::layout::ColumnMajor>(launch);
}

}  // namespace hearth::HEARTH_GPU
