#include "device/cuda_event.h"

#include <utility>

namespace hearth {

CudaEvent::CudaEvent(std::shared_ptr<CudaState> device, bool timed)
    : device_(std::move(device)), timed_(timed) {
  device_->call("cudaEventCreateWithFlags", &CudaCalls::event_create, &handle_, timed);
}

CudaEvent::~CudaEvent() { device_->release(&CudaCalls::event_destroy, handle_); }

void CudaEvent::reset() {
  const std::lock_guard lock(mutex_);
  recorded_ = false;
  error_ = nullptr;
}

void CudaEvent::synchronize() {
  device_->call("cudaEventSynchronize", &CudaCalls::event_synchronize, recorded());
}

bool CudaEvent::reached() {
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    if (!recorded_) return false;
  }
  return device_->has_reached(handle_);
}

void CudaEvent::record(void* stream) {
  device_->call("cudaEventRecord", &CudaCalls::event_record, handle_, stream);
  const std::lock_guard lock(mutex_);
  recorded_ = true;
  changed_.notify_all();
}

void CudaEvent::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

void* CudaEvent::recorded() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return recorded_ || error_; });
  if (error_) std::rethrow_exception(error_);
  return handle_;
}

}  // namespace hearth
