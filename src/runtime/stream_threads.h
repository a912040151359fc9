// Threads that issue the tasks of streams. They live as long as the workspace and wait between
// steps, because the workers of a stream belong to the thread that uses the stream.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth {

/// `run(n, f)` calls f(s) for the streams 0 to n - 1 at the same time: for stream 0 on the calling
/// thread, for each other stream on a thread of its own, always the same one. It returns when all
/// calls have returned. f must not throw. Not thread-safe: a run makes one step at a time.
class StreamThreads {
 public:
  explicit StreamThreads(size_t streams);
  ~StreamThreads();
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  void run(size_t streams, const std::function<void(size_t stream)>& f);

 private:
  void serve(size_t stream);

  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(size_t)>* work_ = nullptr;
  uint64_t round_ = 0;
  size_t streams_ = 0;  // of the current call
  size_t running_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hearth
