// A CUDA runtime without a GPU, for tests of everything above the runtime calls. It is as unhelpful
// as a real one may be:
// * device memory cannot be touched by the host, except by queued work while it runs; a host access
//   ends the test with a segmentation fault, and so does one beyond the end of an allocation;
// * queued work runs as late as it may: on the thread that synchronizes, only what that needs, or,
//   with a seed, any order of streams that events allow;
// * copies to and from pinned host memory read and write when they run; those of other host memory
//   at the call, as the driver may;
// * every call can be made to fail, as can queued work, after which all calls fail.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda_calls.h"

namespace hearth::test {

/// Emulated kernels: queues `work` on a stream of any FakeCuda. While it runs, the memory of the
/// stream's device and of its peers can be touched, by any thread.
void enqueue_on_fake_stream(void* stream, std::function<void()> work);

struct FakeCudaOptions {
  int devices = 1;
  size_t memory_bytes = size_t{1} << 30;  // of each
  uint64_t seed = 0;                      // order of streams; 0: only what is waited for, latest
  bool peer_access = true;                // what the hardware can
  int major = 9, minor = 0;               // compute capability
};

class FakeCuda final : public CudaCalls {
 public:
  explicit FakeCuda(const FakeCudaOptions& options = {});
  ~FakeCuda() override;

  // What tests ask and plant.

  /// How often a function was called ("copy", "malloc_device", ... as in CudaCalls).
  int64_t count(const std::string& function) const;
  /// The `nth` call from now (1: the next) of the function returns `code`.
  void fail_call(const std::string& function, CudaCode code, int nth = 1);
  /// The `nth` queued work from now does not run; all calls that could tell return `code` from the
  /// moment at which it would have run, forever.
  void fail_work(CudaCode code, int nth = 1);
  size_t largest_copy() const;            // bytes of one call
  int64_t unpinned_copies() const;        // calls of copy with host memory that is not pinned
  size_t device_bytes(int device) const;  // allocated now
  size_t pinned_bytes() const;            // registered now
  int64_t live_handles() const;           // streams and events not destroyed
  /// Queued work that has not run.
  size_t waiting() const;
  /// Order in which work ran: the numbers, from 1, in which it was queued.
  std::vector<int64_t> ran() const;

  std::string error_text(CudaCode code) override;
  CudaCode get_last_error() override;
  CudaCode device_count(int* count) override;
  CudaCode device_info(int device, CudaDeviceInfo* info) override;
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
  CudaCode event_elapsed(float* milliseconds, void* begin, void* end) override;
  CudaCode copy(void* target, const void* source, size_t bytes, void* stream) override;
  CudaCode copy_peer(void* target, int target_device, const void* source, int source_device,
                     size_t bytes, void* stream) override;
  CudaCode fill(void* target, int value, size_t bytes, void* stream) override;

 private:
  friend void enqueue_on_fake_stream(void* stream, std::function<void()> work);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::test
