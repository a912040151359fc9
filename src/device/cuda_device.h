// CUDA devices on top of CudaCalls; device/cuda_runtime.h has the real calls.
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
  int number = 0;                  // CUDA's device number
  uint64_t budget = 0;             // bytes of device memory; 0: default_gpu_budget
  std::shared_ptr<Budget> pinned;  // host budget for pinned arenas; null: none
};

/// The default budget of a GPU with so much memory. Leaves 5 %, but at least 512 MiB, to the driver
/// and libraries.
uint64_t default_gpu_budget(uint64_t memory_bytes);

struct CudaDevices {
  std::vector<std::unique_ptr<Device>> devices;  // in the order of `options`, named "cuda:N"
  std::vector<std::string> notes;                // one message per pair without peer access
};

/// Starts the devices and enables peer access for every pair that supports it. `calls` must outlive
/// the devices. Usage error (2) for a device that is missing or given twice, or a budget beyond its
/// memory. Device error (6) if a call fails.
CudaDevices make_cuda_devices(CudaCalls& calls, std::span<const CudaDeviceOptions> options);

}  // namespace hearth
