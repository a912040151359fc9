// Experts' products by CUTLASS: its kernel for the device, over tables that the device makes.
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "base/error.h"
#include "gpu_kernels/libraries/cutlass/kernels.h"
#include "gpu_kernels/libraries/grouped_libraries.h"
#include "gpu_kernels/libraries/library_workspace.h"

namespace hearth::HEARTH_GPU {
namespace {

struct DeviceFacts {
  int major = 0, minor = 0, multiprocessors = 0;
};

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) {
    throw device_error("CUTLASS: no attributes of device " + std::to_string(device));
  }
  return value;
}

class CutlassLibrary final : public GroupedLibrary {
 public:
  std::string_view name() const override { return "CUTLASS"; }
  std::string version() const override { return HEARTH_CUTLASS_VERSION; }

  std::string declines(GpuStream& stream, const GroupedProduct& product) const override {
    const DeviceFacts device = facts(stream);
    if (!has_kernels(device)) {
      return "no kernels for compute capability " + std::to_string(device.major) + "." +
             std::to_string(device.minor);
    }
    return grouped_misfit(product);
  }

  void run(GpuStream& stream, const GroupedProduct& product) const override {
    const DeviceFacts device = facts(stream);
    Scratch& scratch = stream.scratch();
    Scratch::Frame frame(scratch);
    CutlassLaunch launch;
    launch.groups = static_cast<int>(product.groups.size());
    launch.multiprocessors = device.multiprocessors;
    launch.accumulate = product.accumulate;
    launch.problems = take_grouped_problems(scratch, launch.groups);
    launch.workspace = take_library_workspace(scratch, kCutlassWorkspace);
    launch.stream = stream.handle();
    grouped_problems_on(launch.stream,
                        grouped_problem_args(product, product.table(), launch.problems));
    const std::string problem = kernel(product.form, device)(launch);
    if (!problem.empty()) throw device_error("CUTLASS: a product of experts: " + problem);
  }

  size_t scratch_bytes(int64_t groups) const override {
    return grouped_problem_bytes(groups) + library_workspace_bytes(kCutlassWorkspace);
  }

 private:
  static bool has_kernels(const DeviceFacts& device) {
    return device.major == 8 || (device.major == 9 && device.minor == 0);
  }

  static CutlassRun kernel(Form form, const DeviceFacts& device) {
    const bool hopper = device.major == 9;
    switch (form) {
      case Form::forward: return hopper ? hopper_forward : ampere_forward;
      case Form::dgrad: return hopper ? hopper_dgrad : ampere_dgrad;
      case Form::wgrad: return hopper ? hopper_wgrad : ampere_wgrad;
    }
    HEARTH_CHECK(false, "CUTLASS: form");
  }

  // Of the stream's device.
  DeviceFacts facts(GpuStream& stream) const {
    stream.handle();  // makes it the current one
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) throw device_error("CUTLASS: no current device");
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = facts_.try_emplace(device);
    if (is_new) {
      place->second = {attribute(cudaDevAttrComputeCapabilityMajor, device),
                       attribute(cudaDevAttrComputeCapabilityMinor, device),
                       attribute(cudaDevAttrMultiProcessorCount, device)};
    }
    return place->second;
  }

  mutable std::mutex mutex_;
  mutable std::map<int, DeviceFacts> facts_;
};

}  // namespace

const GroupedLibrary& cutlass_library() {
  static const CutlassLibrary library;
  return library;
}

}  // namespace hearth::HEARTH_GPU
