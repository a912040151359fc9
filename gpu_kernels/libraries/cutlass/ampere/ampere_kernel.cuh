// Grouped products for compute capability 8.x: a grid that fills the device walks the tiles of all
// groups.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_grouped.h>
#include <cutlass/gemm/kernel/default_gemm_grouped.h>

#include "gpu_kernels/libraries/cutlass/kernels.h"

namespace hearth::HEARTH_GPU {
namespace {

// Layouts are CUTLASS's names of a [rows, depth] and b [depth, columns].
template <class LayoutA, class LayoutB>
std::string run_ampere(const CutlassLaunch& launch) {
  using Element = cutlass::bfloat16_t;
  constexpr int kChunk = 8, kSums = 4;  // elements in 16 bytes
  constexpr int kStages = 4;
  using Epilogue = cutlass::epilogue::thread::LinearCombination<float, kSums, float, float>;
  using Kernel = typename cutlass::gemm::kernel::DefaultGemmGrouped<
      Element, LayoutA, cutlass::ComplexTransform::kNone, kChunk, Element, LayoutB,
      cutlass::ComplexTransform::kNone, kChunk, float, cutlass::layout::RowMajor, float,
      cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<128, 128, 32>,
      cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>, Epilogue,
      cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle, kStages,
      cutlass::gemm::kernel::GroupScheduleMode::kDeviceOnly>::GemmKernel;
  using Gemm = cutlass::gemm::device::GemmGrouped<Kernel>;
  static_assert(sizeof(GroupedShape) == sizeof(cutlass::gemm::GemmCoord));

  const GroupedProblems& problems = launch.problems;
  const int blocks = launch.multiprocessors * Gemm::maximum_active_blocks();
  if (blocks <= 0) return "it does not fit this device";
  const float beta = launch.accumulate ? 1 : 0;
  const auto element = [](const void** table) {
    return reinterpret_cast<Element**>(const_cast<void**>(table));
  };
  const typename Gemm::Arguments args(
      reinterpret_cast<cutlass::gemm::GemmCoord*>(problems.shape), launch.groups, blocks,
      typename Epilogue::Params(1, beta), element(problems.a), element(problems.b), problems.c,
      problems.c, problems.a_stride, problems.b_stride, problems.c_stride, problems.c_stride);
  Gemm gemm;
  const auto stream = static_cast<cudaStream_t>(launch.stream);
  cutlass::Status status = gemm.initialize(args, nullptr, stream);
  if (status == cutlass::Status::kSuccess) status = gemm.run(stream);
  if (status == cutlass::Status::kSuccess) return {};
  return cutlass::cutlassGetStatusString(status);
}

}  // namespace
}  // namespace hearth::HEARTH_GPU
