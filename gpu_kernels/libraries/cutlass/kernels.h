// The kernels that CUTLASS gives, one a file because each takes a minute to compile: for compute
// capability 9.0 (hopper, whose machine code runs there alone) and for 8.x (ampere).
#pragma once

#include <string>

#include "gpu_kernels/kernels/grouped_problems.h"

namespace hearth::HEARTH_GPU {

/// A product of groups on the current device.
struct CutlassLaunch {
  GroupedProblems problems;
  int groups = 0;
  int multiprocessors = 0;  // of the device
  bool accumulate = false;
  void* workspace = nullptr;  // of kCutlassWorkspace bytes; holds tensor maps, so 128-byte aligned
  void* stream = nullptr;
};

/// Of what a kernel keeps for each block, on devices of any number of multiprocessors today.
constexpr size_t kCutlassWorkspace = size_t{1} << 20;

/// Enqueues; what CUTLASS says of a failure, empty for none.
using CutlassRun = std::string (*)(const CutlassLaunch&);

std::string hopper_forward(const CutlassLaunch& launch);
std::string hopper_dgrad(const CutlassLaunch& launch);
std::string hopper_wgrad(const CutlassLaunch& launch);
std::string ampere_forward(const CutlassLaunch& launch);
std::string ampere_dgrad(const CutlassLaunch& launch);
std::string ampere_wgrad(const CutlassLaunch& launch);

}  // namespace hearth::HEARTH_GPU
