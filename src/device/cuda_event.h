// The event of a CUDA device.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

#include "device/cuda_state.h"
#include "device/device.h"

namespace hearth {

/// CUDA treats an event that was never recorded as reached. This class blocks waiters until the
/// event has been recorded.
class CudaEvent final : public Event {
 public:
  CudaEvent(std::shared_ptr<CudaState> device, bool timed);
  ~CudaEvent() override;

  void reset() override;
  void synchronize() override;
  bool reached() override;

  void record(void* stream);
  void fail(std::exception_ptr error);
  /// Blocks until the event has been recorded, and returns the cudaEvent_t. Raises the error if the
  /// event failed.
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
