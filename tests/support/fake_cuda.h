// A CUDA runtime without a GPU, for tests of everything above the runtime calls. It is as unhelpful
// as a real runtime may be:
// * Only queued work can access device memory, while it runs. A host access, or an access beyond
//   the end of an allocation, is a segmentation fault.
// * Queued work runs as late as possible, on the thread that synchronizes, and only as much as
//   needed. With a seed, streams run in any order that events allow.
// * Copies with pinned host memory access it when they run; copies with other host memory access it
//   during the call, as the driver may.
// * Tests can make any call fail, or queued work, after which all calls fail.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda_calls.h"

namespace hearth::test {

/// For emulated kernels: queues `work` on a stream of any FakeCuda. While it runs, any thread can
/// access the memory of the stream's device and its peers. Returns the code of a refused launch, else
/// 0.
CudaCode enqueue_on_fake_stream(void* stream, std::function<void()> work);

struct FakeCudaOptions {
  int devices = 1;
  size_t memory_bytes = size_t{1} << 30;  // per device
  uint64_t seed = 0;                      // random order of streams; 0: run only what is waited for
  bool peer_access = true;                // whether the hardware supports it
  int major = 9, minor = 0;               // compute capability
  std::string driver = "fake driver 1";
  double seconds_per_work = 1e-3;         // by the device's clock
  std::vector<std::string> bus_ids = {};  // by number; of others: of no machine
};

class FakeCuda final : public CudaCalls {
 public:
  explicit FakeCuda(const FakeCudaOptions& options = {});
  ~FakeCuda() override;

  // For tests.

  /// Number of calls of a function ("copy", "malloc_device", ... as in CudaCalls).
  int64_t count(const std::string& function) const;
  /// Makes the `nth` call of the function from now (1: the next) return `code`.
  void fail_call(const std::string& function, CudaCode code, int nth = 1);
  /// The `nth` piece of queued work from now does not run. From then on, all calls that can report
  /// an error return `code`.
  void fail_work(CudaCode code, int nth = 1);
  /// Other programs hold so many bytes of each device from now on.
  void take_memory(size_t bytes);
  size_t largest_copy() const;            // in bytes
  int64_t unpinned_copies() const;        // copies with host memory that is not pinned
  size_t device_bytes(int device) const;  // currently allocated
  size_t pinned_bytes() const;            // currently registered
  int64_t live_handles() const;           // streams and events not destroyed
  /// Number of queued pieces of work that have not run.
  size_t waiting() const;
  /// The order in which work ran. Numbers count from 1 in the order of queueing.
  std::vector<int64_t> ran() const;

  std::string error_text(CudaCode code) override;
  CudaCode get_last_error() override;
  CudaCode device_count(int* count) override;
  CudaCode device_info(int device, CudaDeviceInfo* info) override;
  CudaCode driver_version(std::string* text) override;
  CudaCode start_device(int device) override;
  CudaCode set_device(int device) override;
  CudaCode device_synchronize() override;
  CudaCode can_access_peer(int* can, int device, int peer) override;
  CudaCode enable_peer_access(int peer) override;
  CudaCode memory_info(size_t* free, size_t* total) override;
  CudaCode malloc_device(void** address, size_t bytes) override;
  CudaCode free_device(void* address) override;
  CudaCode host_register(void* address, size_t bytes) override;
  CudaCode host_unregister(void* address) override;
  CudaCode priority_range(int* lowest, int* highest) override;
  CudaCode stream_create(void** stream, int priority) override;
  CudaCode stream_destroy(void* stream) override;
  CudaCode stream_synchronize(void* stream) override;
  CudaCode stream_wait_event(void* stream, void* event) override;
  CudaCode event_create(void** event, bool timed) override;
  CudaCode event_destroy(void* event) override;
  CudaCode event_record(void* event, void* stream) override;
  CudaCode event_synchronize(void* event) override;
  CudaCode event_query(void* event) override;
  CudaCode event_elapsed(float* milliseconds, void* begin, void* end) override;
  CudaCode copy(void* target, const void* source, size_t bytes, void* stream) override;
  CudaCode copy_peer(void* target, int target_device, const void* source, int source_device,
                     size_t bytes, void* stream) override;
  CudaCode fill(void* target, int value, size_t bytes, void* stream) override;

 private:
  friend CudaCode enqueue_on_fake_stream(void* stream, std::function<void()> work);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::test
