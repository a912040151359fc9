// The team of workers that runs the tiles of an op. Nothing else makes compute threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace hearth {

/// Lets the calling thread run on every CPU that the process could use at its start. For helper
/// threads, which otherwise inherit the binding of the worker that created them.
void unbind_thread();

/// A reference to a callable, which must outlive the call that takes the reference.
class TileFunction {
 public:
  template <class F>
  TileFunction(const F& f)  // NOLINT: implicit on purpose, so that lambdas can be passed
      : object_(&f), call_([](const void* o, int64_t tile, int worker) {
          (*static_cast<const F*>(o))(tile, worker);
        }) {}
  void operator()(int64_t tile, int worker) const { call_(object_, tile, worker); }

 private:
  const void* object_;
  void (*call_)(const void*, int64_t, int);
};

/// An OpenMP team of a fixed size. An op cuts its work into tiles by shape alone. Any worker may
/// run any tile, so a tile must write only memory that no other tile touches. Sums over tiles are
/// formed afterwards, in tile order. So results do not depend on the number of workers.
///
/// Workers flush denormals (FTZ and DAZ). If cores are given, each worker is bound to its own core.
/// Libraries called inside a tile (oneDNN) run only on that worker.
class Pool {
 public:
  /// `cores`: logical CPU numbers to bind to, one per worker; empty = unbound.
  explicit Pool(int workers, std::vector<int> cores = {});

  int workers() const { return workers_; }
  /// Seconds that workers have spent on tiles since construction, summed over the workers.
  double busy_seconds() const { return 1e-9 * static_cast<double>(busy_.load()); }

  /// Runs tile(i, worker) for every i in [0, tiles), with worker in [0, workers()). Returns when
  /// all have ended, then rethrows the first exception of a tile.
  void run(int64_t tiles, TileFunction tile) const;

 private:
  int workers_;
  std::vector<int> cores_;
  mutable std::atomic<int64_t> busy_{0};  // nanoseconds
};

}  // namespace hearth
