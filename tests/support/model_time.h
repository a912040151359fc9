// Runs an executor on model time: a clock that jumps to the next moment at which something happens,
// once every thread of the executor waits. So paced runs take no real time, and their times are
// exact.
#pragma once

#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "device/link.h"

namespace hearth::test {

/// Threads count as running from `start` until they call `finish`, unless they sleep or wait for an
/// event. While any runs, time stands still.
class ModelTime final : public LinkClock {
 public:
  struct Moment {  // an event, between two uses
    bool reached = false;
    int waiting = 0;
  };

  void start(size_t threads) {
    const std::lock_guard lock(mutex_);
    running_ = static_cast<int>(threads);
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    stop_one();
  }
  double now() override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void sleep_until(double seconds) override {
    std::unique_lock lock(mutex_);
    if (seconds <= now_) return;
    sleeping_.insert(seconds);
    stop_one();
    changed_.wait(lock, [&] { return now_ >= seconds; });
  }
  void reach(Moment& moment) {
    const std::lock_guard lock(mutex_);
    moment.reached = true;
    running_ += moment.waiting;
    moment.waiting = 0;
    changed_.notify_all();
  }
  void wait(Moment& moment) {
    std::unique_lock lock(mutex_);
    if (moment.reached) return;
    ++moment.waiting;
    stop_one();
    changed_.wait(lock, [&] { return moment.reached; });
  }
  bool reached(const Moment& moment) {
    const std::lock_guard lock(mutex_);
    return moment.reached;
  }
  void reset(Moment& moment) {
    const std::lock_guard lock(mutex_);
    moment.reached = false;
  }

 private:
  void stop_one() {
    if (--running_ > 0 || sleeping_.empty()) return;
    now_ = *sleeping_.begin();
    for (; !sleeping_.empty() && *sleeping_.begin() <= now_; ++running_) {
      sleeping_.erase(sleeping_.begin());
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  double now_ = 0;
  std::multiset<double> sleeping_;  // until when
};

/// A device whose events are moments of model time. All places of an executor must be such devices,
/// of one ModelTime; call its `start` with the number of streams before each run.
class ModelTimeDevice final : public Device {
 public:
  ModelTimeDevice(std::shared_ptr<Device> device, ModelTime& time)
      : device_(std::move(device)), time_(time) {}

  const std::string& name() const override { return device_->name(); }
  std::vector<MemorySpace> spaces() const override { return device_->spaces(); }
  bool host_reaches() const override { return device_->host_reaches(); }
  std::optional<LinkRates> link_rates() const override { return device_->link_rates(); }
  std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space, size_t bytes) override {
    return device_->reserve(arena, space, bytes);
  }
  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override {
    return device_->create_stream(options);
  }
  std::unique_ptr<Event> create_event(bool) override { return std::make_unique<TimedEvent>(time_); }
  void record(Event& event, Stream&) override { time_.reach(moment_of(event)); }
  void wait(Stream&, Event& event) override { time_.wait(moment_of(event)); }
  double seconds_between(Event&, Event&) override {
    return std::numeric_limits<double>::quiet_NaN();
  }
  void copy(Stream& stream, void* target, const void* source, size_t bytes) override {
    device_->copy(stream, target, source, bytes);
  }
  void fill(Stream& stream, void* target, std::byte value, size_t bytes) override {
    device_->fill(stream, target, value, bytes);
  }
  /// The executor calls it once at the end of each stream.
  void check() override {
    device_->check();
    time_.finish();
  }
  void fail(Event& event, std::exception_ptr) override { time_.reach(moment_of(event)); }

 private:
  struct TimedEvent final : Event {
    explicit TimedEvent(ModelTime& t) : time(t) {}
    void reset() override { time.reset(moment); }
    void synchronize() override { time.wait(moment); }
    bool reached() override { return time.reached(moment); }
    ModelTime& time;
    ModelTime::Moment moment;
  };
  static ModelTime::Moment& moment_of(Event& event) {
    return dynamic_cast<TimedEvent&>(event).moment;
  }

  std::shared_ptr<Device> device_;
  ModelTime& time_;
};

}  // namespace hearth::test
