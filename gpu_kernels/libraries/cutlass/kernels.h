// Kernels from CUTLASS, one per file because each takes a minute to compile. hopper: compute
// capability 9.0 only. ampere: 8.x.
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
  void* workspace = nullptr;  // kCutlassWorkspace bytes, 128-byte aligned for tensor maps
  void* stream = nullptr;
};

/// Bytes for a kernel's data per block, enough for the number of multiprocessors of current
/// devices.
constexpr size_t kCutlassWorkspace = size_t{1} << 20;

/// Enqueues the product. Returns CUTLASS's error text; empty: success.
using CutlassRun = std::string (*)(const CutlassLaunch&);

std::string hopper_forward(const CutlassLaunch& launch);
std::string hopper_dgrad(const CutlassLaunch& launch);
std::string hopper_wgrad(const CutlassLaunch& launch);
std::string ampere_forward(const CutlassLaunch& launch);
std::string ampere_dgrad(const CutlassLaunch& launch);
std::string ampere_wgrad(const CutlassLaunch& launch);

}  // namespace hearth::HEARTH_GPU
