// The CUDA runtime calls that a device uses, one function each. Tests put a fake runtime in their
// place, and nothing above needs CUDA's headers.
#pragma once

#include <cstddef>
#include <string>

namespace hearth {

/// A cudaError: 0 is success. The numbers are fixed by CUDA.
using CudaCode = int;
inline constexpr CudaCode kCudaOk = 0;
inline constexpr CudaCode kCudaOutOfMemory = 2;
inline constexpr CudaCode kCudaNotReady = 600;
inline constexpr CudaCode kCudaPeerAlreadyEnabled = 704;
inline constexpr CudaCode kCudaNotSupported = 801;

struct CudaDeviceInfo {
  std::string model;
  std::string bus_id;  // domain:bus:device.function
  int major = 0, minor = 0;
  int processors = 0;       // SMs
  size_t shared_bytes = 0;  // limit per block
  size_t memory_bytes = 0;
};

/// Like the runtime's functions of the same names (cudaMalloc, ...), on the device that
/// `set_device` made current for the calling thread. `void*` arguments are the runtime's handles
/// and addresses. Thread-safe.
class CudaCalls {
 public:
  virtual ~CudaCalls() = default;

  virtual std::string error_text(CudaCode code) = 0;
  /// The error of this thread's last failing call or kernel launch. Clears it if the device is
  /// still usable.
  virtual CudaCode get_last_error() = 0;

  virtual CudaCode device_count(int* count) = 0;
  virtual CudaCode device_info(int device, CudaDeviceInfo* info) = 0;
  /// Versions of the driver, as text.
  virtual CudaCode driver_version(std::string* text) = 0;
  /// Starts a device. From then on the host sleeps while it waits for the device.
  virtual CudaCode start_device(int device) = 0;
  virtual CudaCode set_device(int device) = 0;
  /// Waits for everything enqueued to the current device.
  virtual CudaCode device_synchronize() = 0;
  virtual CudaCode can_access_peer(int* can, int device, int peer) = 0;
  /// Lets the current device read and write the memory of `peer`.
  virtual CudaCode enable_peer_access(int peer) = 0;

  virtual CudaCode memory_info(size_t* free, size_t* total) = 0;
  virtual CudaCode malloc_device(void** address, size_t bytes) = 0;
  virtual CudaCode free_device(void* address) = 0;
  /// Pins host memory, for every device.
  virtual CudaCode host_register(void* address, size_t bytes) = 0;
  virtual CudaCode host_unregister(void* address) = 0;

  /// The lowest and the highest priority; smaller numbers mean higher priority.
  virtual CudaCode priority_range(int* lowest, int* highest) = 0;
  /// A stream that does not wait for the default stream.
  virtual CudaCode stream_create(void** stream, int priority) = 0;
  virtual CudaCode stream_destroy(void* stream) = 0;
  virtual CudaCode stream_synchronize(void* stream) = 0;
  virtual CudaCode stream_wait_event(void* stream, void* event) = 0;

  /// An event. The host waits for it without spinning.
  virtual CudaCode event_create(void** event, bool timed) = 0;
  virtual CudaCode event_destroy(void* event) = 0;
  virtual CudaCode event_record(void* event, void* stream) = 0;
  virtual CudaCode event_synchronize(void* event) = 0;
  /// kCudaNotReady if the event has not been reached. That may count as this thread's last error.
  virtual CudaCode event_query(void* event) = 0;
  virtual CudaCode event_elapsed(float* milliseconds, void* begin, void* end) = 0;

  /// Between any two memories of the host and the stream's device; asynchronous.
  virtual CudaCode copy(void* target, const void* source, size_t bytes, void* stream) = 0;
  /// From one device to another; asynchronous.
  virtual CudaCode copy_peer(void* target, int target_device, const void* source, int source_device,
                             size_t bytes, void* stream) = 0;
  virtual CudaCode fill(void* target, int value, size_t bytes, void* stream) = 0;
};

}  // namespace hearth
