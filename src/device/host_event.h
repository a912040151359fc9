// The event of devices whose ops finish before they return (host, virtual): it is reached as soon
// as it is recorded.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "device/device.h"

namespace hearth {

class HostEvent final : public Event {
 public:
  void reset() override {
    const std::lock_guard lock(mutex_);
    reached_ = false;
    error_ = nullptr;
  }
  void synchronize() override { reached_at(); }
  bool reached() override {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    return reached_;
  }
  /// Blocks like `synchronize`; returns when the event was reached.
  std::chrono::steady_clock::time_point reached_at() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reached_ || error_; });
    if (error_) std::rethrow_exception(error_);
    return at_;
  }
  void reach() {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    at_ = std::chrono::steady_clock::now();
    changed_.notify_all();
  }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  std::chrono::steady_clock::time_point at_;
  std::exception_ptr error_;
};

}  // namespace hearth
