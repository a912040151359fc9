// The CUDA runtime, linked statically: it looks for the driver when it is first called, so the
// program runs on machines without one.
#include <cuda_runtime_api.h>

#include "base/system.h"
#include "device/cuda_runtime.h"

namespace hearth {
namespace {

static_assert(kCudaOk == cudaSuccess && kCudaOutOfMemory == cudaErrorMemoryAllocation &&
              kCudaNotReady == cudaErrorNotReady && kCudaNotSupported == cudaErrorNotSupported &&
              kCudaPeerAlreadyEnabled == cudaErrorPeerAccessAlreadyEnabled);

cudaStream_t stream_of(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t event_of(void* handle) { return static_cast<cudaEvent_t>(handle); }

std::string version_text(int version) {  // 13000 is 13.0
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// What a driver calls itself, after a comma: one CUDA version has many releases of the driver.
std::string driver_release() {
  const std::string line = first_line_of_system_file("/proc/driver/nvidia/version");
  return line.empty() ? line : ", " + line;
}

class RuntimeCalls final : public CudaCalls {
 public:
  std::string error_text(CudaCode code) override {
    return cudaGetErrorString(static_cast<cudaError_t>(code));
  }
  CudaCode get_last_error() override { return cudaGetLastError(); }

  CudaCode device_count(int* count) override { return cudaGetDeviceCount(count); }
  CudaCode device_info(int device, CudaDeviceInfo* info) override {
    cudaDeviceProp properties{};
    if (const CudaCode code = cudaGetDeviceProperties(&properties, device)) return code;
    char bus_id[32] = "";
    if (const CudaCode code = cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device)) return code;
    *info = {properties.name,
             bus_id,
             properties.major,
             properties.minor,
             properties.multiProcessorCount,
             properties.sharedMemPerBlockOptin,
             properties.totalGlobalMem};
    return kCudaOk;
  }
  CudaCode driver_version(std::string* text) override {
    int version = 0;
    if (const CudaCode code = cudaDriverGetVersion(&version)) return code;
    *text = "driver for CUDA " + version_text(version) + driver_release();
    return kCudaOk;
  }
  // A wait that spins would take a core from the experts on the host.
  CudaCode start_device(int device) override {
    return cudaInitDevice(device, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid);
  }
  CudaCode set_device(int device) override { return cudaSetDevice(device); }
  CudaCode device_synchronize() override { return cudaDeviceSynchronize(); }
  CudaCode can_access_peer(int* can, int device, int peer) override {
    return cudaDeviceCanAccessPeer(can, device, peer);
  }
  CudaCode enable_peer_access(int peer) override { return cudaDeviceEnablePeerAccess(peer, 0); }

  CudaCode memory_info(size_t* free, size_t* total) override { return cudaMemGetInfo(free, total); }
  CudaCode malloc_device(void** address, size_t bytes) override {
    return cudaMalloc(address, bytes);
  }
  CudaCode free_device(void* address) override { return cudaFree(address); }
  CudaCode host_register(void* address, size_t bytes) override {
    return cudaHostRegister(address, bytes, cudaHostRegisterPortable);
  }
  CudaCode host_unregister(void* address) override { return cudaHostUnregister(address); }

  CudaCode priority_range(int* lowest, int* highest) override {
    return cudaDeviceGetStreamPriorityRange(lowest, highest);
  }
  CudaCode stream_create(void** stream, int priority) override {
    cudaStream_t made = nullptr;
    const CudaCode code = cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, priority);
    *stream = made;
    return code;
  }
  CudaCode stream_destroy(void* stream) override { return cudaStreamDestroy(stream_of(stream)); }
  CudaCode stream_synchronize(void* stream) override {
    return cudaStreamSynchronize(stream_of(stream));
  }
  CudaCode stream_wait_event(void* stream, void* event) override {
    return cudaStreamWaitEvent(stream_of(stream), event_of(event), 0);
  }

  CudaCode event_create(void** event, bool timed) override {
    cudaEvent_t made = nullptr;
    const unsigned flags = cudaEventBlockingSync | (timed ? 0u : cudaEventDisableTiming);
    const CudaCode code = cudaEventCreateWithFlags(&made, flags);
    *event = made;
    return code;
  }
  CudaCode event_destroy(void* event) override { return cudaEventDestroy(event_of(event)); }
  CudaCode event_record(void* event, void* stream) override {
    return cudaEventRecord(event_of(event), stream_of(stream));
  }
  CudaCode event_synchronize(void* event) override { return cudaEventSynchronize(event_of(event)); }
  CudaCode event_query(void* event) override { return cudaEventQuery(event_of(event)); }
  CudaCode event_elapsed(float* milliseconds, void* begin, void* end) override {
    return cudaEventElapsedTime(milliseconds, event_of(begin), event_of(end));
  }

  CudaCode copy(void* target, const void* source, size_t bytes, void* stream) override {
    return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream_of(stream));
  }
  CudaCode copy_peer(void* target, int target_device, const void* source, int source_device,
                     size_t bytes, void* stream) override {
    return cudaMemcpyPeerAsync(target, target_device, source, source_device, bytes,
                               stream_of(stream));
  }
  CudaCode fill(void* target, int value, size_t bytes, void* stream) override {
    return cudaMemsetAsync(target, value, bytes, stream_of(stream));
  }
};

std::string reason_of(cudaError_t code) {
  int driver = 0, runtime = 0;
  if (code == cudaErrorInsufficientDriver) {
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) return "this machine has no NVIDIA driver";
    return "the driver supports CUDA " + version_text(driver) + ", but this build needs " +
           version_text(runtime) + "; update the driver";
  }
  if (code == cudaErrorNoDevice) return "the driver reports no GPU";
  return std::string("cudaGetDeviceCount: ") + cudaGetErrorString(code) + " (" +
         std::to_string(code) + ")";
}

}  // namespace

CudaCalls* cuda_calls(std::string& why_not) {
  static RuntimeCalls calls;
  int count = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count == 0) code = cudaErrorNoDevice;
  if (code == cudaSuccess) return &calls;
  why_not = reason_of(code);
  return nullptr;
}

std::string_view cuda_architectures() { return HEARTH_CUDA_ARCHITECTURES; }

}  // namespace hearth
