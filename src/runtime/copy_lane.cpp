#include "runtime/copy_lane.h"

#include <utility>

#include "base/error.h"
#include "base/pool.h"

namespace hearth {

CopyLane::CopyLane(Device& device, StreamUse use, const PinnedHomes& homes, int32_t most_in_flight,
                   Calls calls, LinkClock& clock)
    : device_(device), copier_(device, use, homes), calls_(std::move(calls)), clock_(clock) {
  for (int32_t i = 0; i < most_in_flight; ++i) events_.push_back(device.create_event());
  thread_ = std::thread([this] { serve(); });
}

CopyLane::~CopyLane() { stop(); }

void CopyLane::push(const CopyJob& job) {
  const std::lock_guard lock(mutex_);
  if (is_stopping_) return;
  jobs_.push_back(job);
  changed_.notify_one();
}

void CopyLane::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void CopyLane::serve() {
  unbind_thread();  // the thread that made this one may be bound
  try {
    for (;;) {
      report_passed();
      CopyJob job;
      if (take(job)) {
        start(job);
      } else if (!flying_.empty()) {
        flying_.front().passed->synchronize();
      } else if (!wait_for_job()) {
        return;
      }
    }
  } catch (...) {
    calls_.failed(std::current_exception());
  }
}

bool CopyLane::take(CopyJob& job) {
  const std::lock_guard lock(mutex_);
  if (is_stopping_ || jobs_.empty()) return false;
  job = jobs_.front();
  jobs_.pop_front();
  return true;
}

void CopyLane::start(const CopyJob& job) {
  HEARTH_CHECK(flying_.size() < events_.size(), "copy lane: more pieces than the window");
  Event& passed = *events_[next_event_];
  next_event_ = (next_event_ + 1) % events_.size();
  Flying flying;
  flying.passed = &passed;
  flying.done.piece = job.piece;
  flying.done.begin = clock_.now();
  flying.done.bytes = copier_.copy(job.piece, job.home, job.slot);
  passed.reset();
  device_.record(passed, copier_.stream());
  if (job.arrived != nullptr) device_.record(*job.arrived, copier_.stream());
  flying_.push_back(flying);
}

void CopyLane::report_passed() {
  while (!flying_.empty() && flying_.front().passed->reached()) {
    CopyDone done = flying_.front().done;
    flying_.pop_front();
    done.end = clock_.now();
    calls_.passed(done);
  }
}

bool CopyLane::wait_for_job() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
  return !is_stopping_;
}

}  // namespace hearth
