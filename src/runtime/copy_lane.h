// One direction of a device's link: a thread that issues pieces in the order given and reports each
// when it has passed.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "device/link.h"
#include "runtime/piece_copier.h"

namespace hearth {

/// A piece to copy. What it points to must stay until the piece has passed.
struct CopyJob {
  Piece piece;
  std::span<const HomeRange> home;
  std::byte* slot = nullptr;
  Event* arrived = nullptr;  // recorded behind the piece if it is a load's last; else null
};

/// A piece that has passed.
struct CopyDone {
  Piece piece;
  double begin = 0, end = 0;  // seconds of the clock: issued, seen to have passed
  size_t bytes = 0;           // that crossed the link
};

/// Issues pieces one after the other without waiting for them, so that the link is never idle
/// between two; the loader's window bounds how many. Where nothing can be issued, it sleeps until
/// the oldest piece has passed (a blocking wait, no spinning) or a piece is given.
class CopyLane {
 public:
  struct Calls {
    std::function<void(const CopyDone&)> passed;
    std::function<void(std::exception_ptr)> failed;  // the last call
  };

  /// `most_in_flight`: pieces. Calls come from the lane's thread, without a lock of the lane.
  CopyLane(Device& device, StreamUse use, const PinnedHomes& homes, int32_t most_in_flight,
           Calls calls, LinkClock& clock);
  /// As `stop`.
  ~CopyLane();

  /// Thread-safe. Does nothing after `stop`.
  void push(const CopyJob& job);
  /// Leaves out what has not begun, waits for what has, and joins. Not from the lane's thread.
  void stop();

 private:
  struct Flying {
    CopyDone done;
    Event* passed = nullptr;
  };

  void serve();
  bool take(CopyJob& job);
  void start(const CopyJob& job);
  void report_passed();
  bool wait_for_job();

  Device& device_;
  PieceCopier copier_;
  Calls calls_;
  LinkClock& clock_;
  std::vector<std::unique_ptr<Event>> events_;  // used by turns
  size_t next_event_ = 0;
  std::deque<Flying> flying_;  // of the thread

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CopyJob> jobs_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace hearth
