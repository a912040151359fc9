#include "runtime/event_watch.h"

#include <utility>

#include "base/pool.h"

namespace hearth {

EventWatch::EventWatch(Calls calls) : calls_(std::move(calls)) {
  thread_ = std::thread([this] { serve(); });
}

EventWatch::~EventWatch() { stop(); }

void EventWatch::push(int32_t id, Event& event) {
  const std::lock_guard lock(mutex_);
  new_.push_back({id, &event});
  changed_.notify_one();
}

void EventWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void EventWatch::serve() {
  unbind_thread();
  std::deque<Watched> watched;
  try {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_stopping_ || !new_.empty() || !watched.empty(); });
        if (is_stopping_) return;
        watched.insert(watched.end(), new_.begin(), new_.end());
        new_.clear();
      }
      watched.front().event->synchronize();
      std::erase_if(watched, [&](const Watched& w) {
        if (!w.event->reached()) return false;
        calls_.reached(w.id);
        return true;
      });
    }
  } catch (...) {
    calls_.failed(std::current_exception());
  }
}

}  // namespace hearth
