#include "runtime/stream_threads.h"

#include "base/error.h"
#include "base/pool.h"

namespace hearth {

StreamThreads::StreamThreads(size_t streams) {
  for (size_t s = 1; s < streams; ++s) {
    threads_.emplace_back([this, s] { serve(s); });
  }
}

StreamThreads::~StreamThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void StreamThreads::run(size_t streams, const std::function<void(size_t)>& f) {
  HEARTH_CHECK(streams >= 1 && streams <= threads_.size() + 1, "stream threads: too many streams");
  if (streams == 1) return f(0);
  {
    const std::lock_guard lock(mutex_);
    work_ = &f;
    streams_ = streams;
    running_ = streams - 1;
    ++round_;
  }
  start_.notify_all();
  f(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
}

void StreamThreads::serve(size_t stream) {
  unbind_thread();  // the thread that made this one may be bound: it has touched arenas
  uint64_t seen = 0;
  for (;;) {
    const std::function<void(size_t)>* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return ending_ || round_ != seen; });
      if (ending_) return;
      seen = round_;
      if (stream >= streams_) continue;
      work = work_;
    }
    (*work)(stream);
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace hearth
