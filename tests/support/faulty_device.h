// A device that counts what is copied, and that fails, refuses or dawdles as a test asks.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "base/error.h"
#include "device/device.h"

namespace hearth::test {

class FaultyDevice final : public Device {
 public:
  explicit FaultyDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  /// The nth copy from now fails (1: the next); 0: none.
  std::atomic<int64_t> fail_copy = 0;
  /// Bytes that may still be pinned; more is refused.
  std::atomic<int64_t> may_pin = int64_t{1} << 60;
  /// Copies and recordings of events wait for up to so many microseconds, by chance.
  std::atomic<int> most_delay_us = 0;

  /// Bytes that streams of a direction have copied.
  uint64_t copied(StreamUse use) const { return copied_[static_cast<size_t>(use)]; }
  int64_t copies() const { return copies_; }
  size_t pinned() const { return pinned_; }

  const std::string& name() const override { return device_->name(); }
  bool has_own_clock() const override { return device_->has_own_clock(); }
  std::vector<MemorySpace> spaces() const override { return device_->spaces(); }
  bool host_reaches() const override { return device_->host_reaches(); }
  std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space, size_t bytes) override {
    return device_->reserve(arena, space, bytes);
  }
  std::shared_ptr<void> pin(void* memory, size_t bytes) override {
    if ((may_pin -= static_cast<int64_t>(bytes)) < 0) return nullptr;
    pinned_ += bytes;
    std::shared_ptr<void> pin = device_->pin(memory, bytes);
    return {memory, [this, bytes, pin](void*) { pinned_ -= bytes; }};
  }
  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override {
    std::unique_ptr<Stream> stream = device_->create_stream(options);
    const std::lock_guard lock(mutex_);
    uses_[stream.get()] = options.use;
    return stream;
  }
  std::unique_ptr<Event> create_event(bool timed) override { return device_->create_event(timed); }
  void record(Event& event, Stream& stream) override {
    dawdle();
    device_->record(event, stream);
  }
  void wait(Stream& stream, Event& event) override { device_->wait(stream, event); }
  double seconds_between(Event& begin, Event& end) override {
    return device_->seconds_between(begin, end);
  }
  void copy(Stream& stream, void* target, const void* source, size_t bytes) override {
    dawdle();
    if (fail_copy > 0 && --fail_copy == 0) throw device_error(name() + ": a planted fault");
    device_->copy(stream, target, source, bytes);
    ++copies_;
    const std::lock_guard lock(mutex_);
    copied_[static_cast<size_t>(uses_.at(&stream))] += bytes;
  }
  void fill(Stream& stream, void* target, std::byte value, size_t bytes) override {
    dawdle();
    device_->fill(stream, target, value, bytes);
  }
  void check() override { device_->check(); }
  void fail(Event& event, std::exception_ptr error) override {
    device_->fail(event, std::move(error));
  }

 private:
  void dawdle() const {
    if (most_delay_us == 0) return;
    thread_local std::minstd_rand random(
        static_cast<uint32_t>(std::hash<std::thread::id>{}(std::this_thread::get_id())));
    const int delay = static_cast<int>(random() % static_cast<uint32_t>(most_delay_us + 1));
    if (delay > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay));
  }

  std::unique_ptr<Device> device_;
  std::mutex mutex_;
  std::map<Stream*, StreamUse> uses_;
  std::atomic<uint64_t> copied_[3] = {};
  std::atomic<int64_t> copies_ = 0;
  std::atomic<size_t> pinned_ = 0;
};

}  // namespace hearth::test
