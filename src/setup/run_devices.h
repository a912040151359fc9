// Starts the devices of --devices, each with its op set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_calls.h"
#include "device/device.h"
#include "modes/planner.h"
#include "ops/op_set.h"
#include "plan/cost_table.h"
#include "setup/place_budget.h"

namespace hearth {

/// A place of a run: its memory budget, device and op set.
struct ComputePlace {
  PlaceBudget budget;
  std::shared_ptr<Device> device;
  const OpSet* ops = nullptr;
  SpaceKind memory = SpaceKind::host;
  bool host_reaches = true;                     // Device::host_reaches
  int workers = 0;                              // of a compute stream; 0: as many as the host's
  std::shared_ptr<const CostTable> costs = {};  // paces the place; null: none
};

struct RunDevices {
  std::vector<ComputePlace> places;  // the first is the host
  Placement placement;               // of the model's parts
  std::vector<int> cores;            // logical CPUs of the host's workers; empty: unbound

  /// Of the places, in order: "host", "cuda:0".
  std::vector<std::string> names() const;
};

/// How the program reaches CUDA, and its op set there. Tests set fakes.
struct CudaBackEnd {
  /// Returns null and sets the reason if CUDA is not available. Called only if a GPU is requested
  /// or searched for.
  CudaCalls* (*calls)(std::string& why_not) = nullptr;
  std::string_view ops;
  std::string_view architectures;  // with compiled code, in the format of `missing_cuda_code`
  /// Files that reveal an NVIDIA driver: of its kernel module, or in WSL.
  std::vector<std::string> driver_files = {"/proc/driver/nvidia/version", "/dev/dxg"};
};
void set_cuda_back_end(const CudaBackEnd& back_end);

struct DeviceRequest {
  std::string devices = "auto";  // the value of --devices
  uint64_t gpu_memory = 0;       // limit per GPU in bytes; 0: the default
  uint64_t host_budget = 0;
  std::vector<int> cores;  // of the host's workers
};

/// `auto` means `host`; if a driver reveals a GPU, a note says how to use it. A single device holds
/// the whole model. A device and `host` keep the experts on the host. Reads the cost tables of the
/// list; a virtual device has the links of its table. Usage error (2) for an invalid list or a
/// missing device, with the reason. Input error (3) if a table cannot be read. Device error (6) if a
/// device does not start.
RunDevices open_devices(const DeviceRequest& request);

}  // namespace hearth
