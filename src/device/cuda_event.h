// The event of a CUDA device.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

#include "device/cuda_state.h"
#include "device/device.h"

namespace hearth {

/// CUDA takes an event that was never recorded as reached; this one makes those who wait block until
/// it has been recorded.
class CudaEvent final : public Event {
 public:
  CudaEvent(std::shared_ptr<CudaState> device, bool timed);
  ~CudaEvent() override;

  void reset() override;
  void synchronize() override;

  void record(void* stream);
  void fail(std::exception_ptr error);
  /// Blocks until it has been recorded or failed; the error if so. Returns the cudaEvent_t.
  void* recorded();
  bool timed() const { return timed_; }
  const CudaState& device() const { return *device_; }

 private:
  const std::shared_ptr<CudaState> device_;
  const bool timed_;
  void* handle_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool recorded_ = false;
  std::exception_ptr error_;
};

}  // namespace hearth
