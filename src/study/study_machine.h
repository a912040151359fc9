// A machine that is only described: GPUs on PCIe below root complexes, and the cores of the host that
// belong to each. Its times are those of the testbed of APTMoE (SC 2024, IV-A), unless cost tables
// are given.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "setup/described_machine.h"
#include "study/study_shape.h"

namespace hearth {

struct StudyMachine {
  int gpus = 4;
  int roots = 2;                     // neighbouring GPUs share one
  double link_bytes_per_s = 10.5e9;  // of each GPU, in each direction
  double root_bytes_per_s = 0;       // of each root complex, in each direction; 0: no limit
  int cores_per_gpu = 14;
  uint64_t gpu_memory = 40'000'000'000;
  bool updates = true;  // false: those of the optimizer, and the norm, take no time
  std::shared_ptr<const CostTable> gpu = {}, host = {};  // null: estimated for the shape
};

/// Rates of the estimated tables. GPU: an A800 in f32 without tensor cores, and its memory. Core: its
/// share of a Xeon Gold 6348, which has 28 cores and eight channels of DDR4-3200, of whose bandwidth
/// three quarters are reached.
inline constexpr double kStudyGpuFlops = 17e12, kStudyGpuBytes = 1.3e12;
inline constexpr double kStudyCoreFlops = 150e9, kStudyCoreBytes = 5.5e9;
inline constexpr double kStudyLaunch = 30e-6;  // seconds of a task of a GPU that are no arithmetic

/// Of the host: entries for the cores of one GPU, and for those of all GPUs together.
CostTable estimated_gpu_table(const StudyShape& shape);
CostTable estimated_host_table(const StudyShape& shape, int cores_per_gpu, int gpus);

/// The machine with a table for each place; its GPUs are "virtual:0" and so on.
std::shared_ptr<const DescribedMachine> described(const StudyMachine& machine,
                                                  const StudyShape& shape);
/// The list of its devices, the host last.
std::string device_list(const StudyMachine& machine);

}  // namespace hearth
