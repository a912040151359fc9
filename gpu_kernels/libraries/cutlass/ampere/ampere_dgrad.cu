#include "gpu_kernels/libraries/cutlass/ampere/ampere_kernel.cuh"

namespace hearth::HEARTH_GPU {

std::string ampere_dgrad(const CutlassLaunch& launch) {
  return run_ampere<cutlass::layout::RowMajor, cutlass::layout::RowMajor>(launch);
}

}  // namespace hearth::HEARTH_GPU
