// The devices of a run: started as --devices asks, with the op set that computes on each.
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
#include "setup/place_budget.h"

namespace hearth {

/// A place of a run, with what computes there.
struct ComputePlace {
  PlaceBudget budget;
  std::shared_ptr<Device> device;
  const OpSet* ops = nullptr;
  SpaceKind memory = SpaceKind::host;
  bool host_reaches = true;  // Device::host_reaches
};

struct RunDevices {
  std::vector<ComputePlace> places;  // the first is the host
  Placement placement;               // of the parts of the model
  std::vector<int> cores;            // logical CPUs of the host's workers; empty: unbound
};

/// Of the program: how CUDA is reached, and which op set computes there. Tests give fake ones.
struct CudaBackEnd {
  /// Null, and the reason, where there is none; called where a GPU is asked for or looked for.
  CudaCalls* (*calls)(std::string& why_not) = nullptr;
  std::string_view ops;
  std::string_view architectures;  // that there is code for, as `missing_cuda_code` reads them
  /// Files that show an NVIDIA driver: of its kernel module, and of Windows' subsystem for Linux.
  std::vector<std::string> driver_files = {"/proc/driver/nvidia/version", "/dev/dxg"};
};
void set_cuda_back_end(const CudaBackEnd& back_end);

struct DeviceRequest {
  std::string devices = "auto";  // the value of --devices
  uint64_t gpu_memory = 0;       // bytes of a GPU that may be used, 0: the default
  uint64_t host_budget = 0;
  std::vector<int> cores;  // of the host's workers
};

/// `auto` is `host`; if a driver shows a GPU, a line says how to ask for it. A device alone holds the
/// whole model; a device and `host` keep the experts on the host. Errors: usage (2) for a list that
/// makes no sense or names a device that does not exist, with the reason; device (6) for a device that
/// does not start.
RunDevices open_devices(const DeviceRequest& request);

}  // namespace hearth
