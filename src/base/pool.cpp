#include "base/pool.h"

#include <immintrin.h>
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <string>

#include "base/error.h"

namespace hearth {
namespace {

// What holds for a worker while it runs tiles: denormals flushed (MXCSR belongs to the thread, so
// setting it once in the main thread would not reach the others), and a library that opens an
// OpenMP region inside a tile gets this one thread.
class WorkerScope {
 public:
  WorkerScope() : mxcsr_(_mm_getcsr()), threads_(omp_get_max_threads()) {
    _mm_setcsr(mxcsr_ | kFlushToZero | kDenormalsAreZero);
    omp_set_num_threads(1);
  }
  ~WorkerScope() {
    _mm_setcsr(mxcsr_);
    omp_set_num_threads(threads_);
  }
  WorkerScope(const WorkerScope&) = delete;
  WorkerScope& operator=(const WorkerScope&) = delete;

 private:
  static constexpr unsigned kFlushToZero = 0x8000;
  static constexpr unsigned kDenormalsAreZero = 0x0040;
  unsigned mxcsr_;
  int threads_;
};

// Of the process, as it was before the first worker was bound.
const cpu_set_t& all_cpus() {
  static const cpu_set_t cpus = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  return cpus;
}

// The CPU that this thread is bound to; -1: none. Threads of a team live on between regions: they are
// bound once, until a pool with another core comes.
thread_local int bound = -1;

void bind_to(int core) {
  if (bound == core) return;
  all_cpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw usage_error("cannot bind a worker to CPU " + std::to_string(core) +
                      ": it is not among the CPUs that this process may use");
  }
  bound = core;
}

// The exception of the lowest tile, so that which one is reported does not depend on timing.
class FirstException {
 public:
  void keep(int64_t tile) {
    const std::lock_guard lock(mutex_);
    if (tile < tile_) {
      tile_ = tile;
      exception_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  int64_t tile_ = std::numeric_limits<int64_t>::max();
  std::exception_ptr exception_;
};

}  // namespace

void unbind_thread() {
  // As good as it goes: a thread that stays bound computes the same.
  sched_setaffinity(0, sizeof(cpu_set_t), &all_cpus());
  bound = -1;
}

Pool::Pool(int workers, std::vector<int> cores) : workers_(workers), cores_(std::move(cores)) {
  HEARTH_CHECK(workers >= 1, "a pool without workers");
  HEARTH_CHECK(cores_.empty() || cores_.size() >= static_cast<size_t>(workers),
               "a pool with fewer cores than workers");
  for (const int core : cores_) {
    HEARTH_CHECK(core >= 0 && core < CPU_SETSIZE, "a pool with an impossible CPU number");
  }
}

void Pool::run(int64_t tiles, TileFunction tile) const {
  std::atomic<int64_t> next{0};
  FirstException error;

  const auto work = [&](int worker) {
    const WorkerScope scope;
    const auto begin = std::chrono::steady_clock::now();
    try {
      if (!cores_.empty()) bind_to(cores_[static_cast<size_t>(worker)]);
    } catch (...) {
      error.keep(-1);
    }
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tiles;) {
      try {
        tile(i, worker);
      } catch (...) {
        error.keep(i);
      }
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    busy_.fetch_add(took.count(), std::memory_order_relaxed);
  };

  if (workers_ == 1 || tiles <= 1) {
    work(0);
  } else {
#pragma omp parallel num_threads(workers_)
    work(omp_get_thread_num());
  }
  error.rethrow();
}

}  // namespace hearth
