// Grouped products for compute capability 9.0: copies by the tensor memory accelerator, products by
// whole warp groups, a fixed grid that walks the tiles of all groups.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/operations.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/group_array_problem_shape.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "gpu_kernels/libraries/cutlass/kernels.h"

namespace hearth::HEARTH_GPU {
namespace {

using HopperElement = cutlass::bfloat16_t;
// Two blocks that share columns of b load it together: half the traffic of the second-level cache.
using HopperTile = cute::Shape<cute::_128, cute::_256, cute::_64>;
using HopperCluster = cute::Shape<cute::_2, cute::_1, cute::_1>;
using HopperProblems = cutlass::gemm::GroupProblemShape<cute::Shape<int, int, int>>;

// Elements in 16 bytes.
constexpr int kHopperChunk = 8, kHopperSums = 4;

// c = a b + beta c, in f32. Through shared memory also where c is read: without it a short sum with
// beta of 1 takes several times as long.
using HopperEpilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, HopperTile, HopperCluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, float,
    cutlass::layout::RowMajor*, kHopperSums, float, cutlass::layout::RowMajor*, kHopperSums,
    cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative,
    cutlass::epilogue::fusion::LinearCombination<float, float>>::CollectiveOp;
using HopperStages = cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
    sizeof(HopperEpilogue::SharedStorage))>;

// Layouts are CUTLASS's names of a [rows, depth] and b [depth, columns].
template <class LayoutA, class LayoutB>
using HopperMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, HopperElement, LayoutA*, kHopperChunk,
    HopperElement, LayoutB*, kHopperChunk, float, HopperTile, HopperCluster, HopperStages,
    cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative>::CollectiveOp;

// The tables are arrays of plain numbers; CUTLASS has the same bytes as its own types.
template <class To, class From>
To* table_as(From* table) {
  static_assert(sizeof(To) == sizeof(From) && alignof(To) <= alignof(From));
  return reinterpret_cast<To*>(table);
}

template <class LayoutA, class LayoutB>
std::string run_hopper(const CutlassLaunch& launch) {
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<HopperProblems, HopperMainloop<LayoutA, LayoutB>,
                                           HopperEpilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
  static_assert(Kernel::SharedStorageSize <= 227 << 10, "a block has 227 KiB of shared memory");
  using StrideA = typename Kernel::InternalStrideA;
  using StrideB = typename Kernel::InternalStrideB;
  using StrideC = typename Kernel::InternalStrideD;
  const GroupedProblems& problems = launch.problems;

  typename Gemm::Arguments args;
  args.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
  args.problem_shape = {launch.groups,
                        table_as<HopperProblems::UnderlyingProblemShape>(problems.shape), nullptr};
  args.mainloop = {table_as<const HopperElement*>(problems.a), table_as<StrideA>(problems.a_stride),
                   table_as<const HopperElement*>(problems.b),
                   table_as<StrideB>(problems.b_stride)};
  args.epilogue.thread.alpha = 1;
  args.epilogue.thread.beta = launch.accumulate ? 1 : 0;
  args.epilogue.ptr_C = const_cast<const float**>(problems.c);
  args.epilogue.dC = table_as<StrideC>(problems.c_stride);
  args.epilogue.ptr_D = problems.c;
  args.epilogue.dD = table_as<StrideC>(problems.c_stride);
  args.hw_info.sm_count = launch.multiprocessors;
  if (Gemm::get_workspace_size(args) > kCutlassWorkspace) return "its workspace is too small";
  cutlass::Status status = Gemm::can_implement(args);
  Gemm gemm;
  if (status == cutlass::Status::kSuccess) {
    status = gemm.run(args, launch.workspace, static_cast<cudaStream_t>(launch.stream));
  }
  if (status == cutlass::Status::kSuccess) return {};
  return cutlass::cutlassGetStatusString(status);
}

}  // namespace
}  // namespace hearth::HEARTH_GPU
