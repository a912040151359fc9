// A thread that reports when events of a device are reached.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "device/device.h"

namespace hearth {

/// For devices whose work runs beside the host. Sleeps until the oldest event is reached, then
/// reports all that are. Events of one stream are reported without delay. Of several streams an
/// event may wait for the oldest of the others.
class EventWatch {
 public:
  struct Calls {
    std::function<void(int32_t id)> reached;
    std::function<void(std::exception_ptr)> failed;  // the last call
  };

  /// Calls come from the watch's thread.
  explicit EventWatch(Calls calls);
  /// As `stop`.
  ~EventWatch();

  /// The event was recorded; it must stay until it is reported. Thread-safe.
  void push(int32_t id, Event& event);
  /// Reports nothing more, and joins. Not from the watch's thread.
  void stop();

 private:
  struct Watched {
    int32_t id = 0;
    Event* event = nullptr;
  };
  void serve();

  Calls calls_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Watched> new_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace hearth
