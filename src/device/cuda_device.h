// CUDA devices over a table of runtime calls; the real table comes from device/cuda_runtime.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/budget.h"
#include "device/cuda_calls.h"
#include "device/device.h"

namespace hearth {

struct CudaDeviceOptions {
  int number = 0;                  // as CUDA counts
  uint64_t budget = 0;             // bytes of its memory that may be reserved; 0: the default
  std::shared_ptr<Budget> pinned;  // the host's budget, which pinned arenas take from; null: none
};

/// What a run may use of a GPU of so many bytes unless it is told: all but 5 %, at least 512 MiB
/// left for what the driver and libraries take.
uint64_t default_gpu_budget(uint64_t memory_bytes);

struct CudaDevices {
  std::vector<std::unique_ptr<Device>> devices;  // as asked for, named "cuda:N"
  std::vector<std::string> notes;                // lines for people: pairs without peer access
};

/// Starts the devices and gives every pair access to each other where the hardware can; `calls`
/// outlives them. Errors: usage (2) for a number that is not there or given twice or a budget beyond
/// the memory, device (6) for a call that fails.
CudaDevices make_cuda_devices(CudaCalls& calls, std::span<const CudaDeviceOptions> options);

}  // namespace hearth
